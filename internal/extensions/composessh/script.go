package composessh

import (
	"embed"
	"strings"
	"sync"
)

// The files of sh/ and what the operations (create, teardown, status, find,
// lease, reaper) call of them. Variables: box is the sandbox's folder, id its
// id, root the host root; each function may call fail, warn, manifest_get and
// manifest_put, and leaves nothing running. Children get </dev/null.
//
//	engine.sh     check_engine: Docker and Compose are there and new enough
//	lib.sh        answers, clock, locks, manifest; with every operation
//	list.sh       ours_containers, ours_networks, ours_volumes; with every operation
//	root.sh       check_root: nobody else can change the host root; with every operation
//	subnet.sh     subnets_allocate: under the host lock, sets and exports SBX_NET_<i> for
//	              the networks named in the variable networks; manifest key subnets
//	deny.sh       deny_prove: fails unless default deny is proved for this engine
//	firewall.sh   firewall_up, firewall_down: what of rules belongs to id; down is quiet when none
//	proxy.sh      proxy_up, proxy_down: the same for the proxy
//	facts.sh      prints the host's facts as a JSON object (the operation probe)
//	images.sh     release_images: after the containers went
//	pull.sh       pull_images, look_at_bases: what is there before it is run or built on
//	build.sh      build_images: before up; needs images and pull
//	toolbox.sh    toolbox_image (sets toolbox), toolbox_remove_tree PATH (rm -rf also of
//	              what root in a container made), toolbox_release (with the last sandbox)
//	memory.sh     memory_put, memory_drop: the files of secrets; memory_sweep: those of no sandbox
//	readiness.sh  ready_probe: once; 0 = the probe answered, else why is set
//	timer.sh      timer_start: makes sure that a reaper watches the leases; sets timer
//	remove.sh     remove_objects: containers, networks, volumes, rules of id
//
//go:embed sh/*.sh
var shellFiles embed.FS

// script joins the library and the named files of sh/ (without ".sh") into
// what is sent to a host. Comments and indentation stay behind. The last file
// is the operation; those before it only define functions.
func script(names ...string) string {
	var b strings.Builder
	for _, name := range append([]string{"lib", "root", "list"}, names...) {
		b.WriteString(stripped(name))
	}
	return b.String()
}

var strippedFiles sync.Map // name -> string

func stripped(name string) string {
	if s, ok := strippedFiles.Load(name); ok {
		return s.(string)
	}
	raw, err := shellFiles.ReadFile("sh/" + name + ".sh")
	if err != nil {
		panic(err) // the files are embedded; a wrong name is a defect that every test finds
	}
	s := strip(string(raw))
	strippedFiles.Store(name, s)
	return s
}

// strip drops lines that are only a comment, and empty lines. Quoted text of
// several lines must not hold such lines, and here-documents are not used.
func strip(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if bare == "" || strings.HasPrefix(bare, "#") {
			continue
		}
		b.WriteString(strings.TrimLeft(strings.TrimRight(line, "\r\n"), "\t"))
		b.WriteByte('\n')
	}
	return b.String()
}
