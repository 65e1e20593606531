package composessh

import (
	"embed"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/hostlease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/netwall"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// The files of sh/, and the functions that the operations (create, teardown, status, find, lease, reaper) call from them.
// Variables: box is the sandbox's folder, id its id, root the host root. Each function may call fail, warn, manifest_get
// and manifest_put, and leaves nothing running. Children get </dev/null. The files of the rooms are with them: execwire,
// hostlease, netwall.
//
//	await.sh      await_services, await_settled, await_probe: until a stack is ready
//	engine.sh     check_engine: Docker and Compose exist and are new enough
//	lib.sh        fail_docker, need_tools; in every operation
//	list.sh       ours_containers, ours_networks, ours_volumes; in every operation
//	subnet.sh     subnets_allocate: under the host lock, sets and exports SBX_NET_<i> for
//	              the networks in the variable networks; manifest key subnets
//	deny.sh       deny_prove: fails unless default deny is proved for this engine
//	firewall.sh   firewall_up, firewall_down: the rules of id; down is quiet if there are none
//	proxy.sh      proxy_up, proxy_down: the same for the proxy
//	facts.sh      prints the host's facts as a JSON object (the operation probe)
//	images.sh     release_images: after the containers went
//	pull.sh       pull_images, look_at_bases: images before they run or are built on
//	receive.sh    claim, receive: what a caller sends
//	prepare.sh    the operation that puts images on the host before a create
//	build.sh      build_images: before the stack starts; needs images and pull
//	toolbox.sh    toolbox_image (sets toolbox), toolbox_remove_tree PATH (rm -rf, also for
//	              files of root in a container), toolbox_release (with the last sandbox)
//	inside.sh     inside_find: the way into a service
//	pause.sh      the operation that pauses and resumes
//	take.sh       take_box, take_ready: the lock of a sandbox for an operation on it
//	hold.sh       hold_still, move_on: pauses a sandbox for a copy; let_go: after a killed script
//	parts.sh      parts_take: what a sandbox holds, as one file
//	kept.sh       the snapshots of a root; kept_sweep: halves of them
//	restore.sh    origin_get, origin_images, refill: what a new sandbox starts from
//	look.sh       answer_with: the common part of answers about sandboxes
//	memory.sh     memory_put, memory_drop: the files of secrets; memory_sweep: those of lost sandboxes
//	readiness.sh  ready_probe: once; 0 = the probe answered, else why is set
//	survey.sh     survey: everything on the host
//	remove.sh     remove_objects: containers, networks, volumes, rules of id
//
//go:embed sh/*.sh
var shellFiles embed.FS

// scripts are where the files of a script come from.
var scripts = []*shtext.Files{{FS: shellFiles}, execwire.Scripts, hostlease.Scripts, netwall.Scripts}

// script joins the library and the named files of sh/ (without ".sh") into what a host receives. The last
// file is the operation; those before it only define functions.
func script(names ...string) string {
	return shtext.Join(scripts, append([]string{"host", "root", "lib", "list"}, names...)...)
}
