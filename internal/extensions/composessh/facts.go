package composessh

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// factsOf returns what a probe of h means for the sandboxes of a binding there.
func factsOf(h extensions.Host, found extensions.HostFacts) extensions.Facts {
	f := extensions.Facts{Machine: &found, Unfit: found.Unfit}
	n := &f.Narrowing
	note := func(format string, args ...any) { f.Notes = append(f.Notes, fmt.Sprintf(format, args...)) }
	if found.OS != "" && found.Arch != "" {
		n.OS, n.Arch = []string{found.OS}, []string{found.Arch}
	}
	switch allowed, _ := hostEgress(h); {
	case len(found.Isolation) == 0 && len(found.Notes) > 0: // without any enforcement, the owner's permissions do not matter
		none := extensions.EgressNone
		n.Egress = &none
		note("egress: the host %q cannot enforce a network policy yet: %s", h.Name, strings.Join(found.Notes, "; "))
	case found.Egress != "":
		n.Egress = &found.Egress
		if !found.Egress.Includes(allowed) {
			note("egress: the host %q enforces only %q; `sandboxer host check` shows what is missing", h.Name, found.Egress)
		}
	}
	if found.Expiry == extensions.ExpirySweep {
		none := extensions.IdleReapNone // the loop that would watch ends with the login
		n.Expiry, n.IdleReap = &found.Expiry, &none
		note("expiry: the host %q ends processes with their login, so it cannot end a sandbox on time; enable "+
			"lingering for the login (loginctl enable-linger)", h.Name)
	}
	if found.SecretsAs != nil && !slices.Contains(found.SecretsAs, extensions.SecretsFile) {
		n.SecretsAs = found.SecretsAs
		note("secrets: the host %q has no memory file system at /dev/shm; mount a tmpfs there", h.Name)
	}
	if !found.GPU {
		n.GPU = &found.GPU
		note("gpu: the host %q has no GPU that its Docker can use; install the NVIDIA container toolkit", h.Name)
	}
	sizes(&f, h, found)
	return f
}

// sizes limits to the machine's own: Docker refuses more CPUs than exist, and missing memory kills what runs.
func sizes(f *extensions.Facts, h extensions.Host, found extensions.HostFacts) {
	var has []string
	for _, size := range []struct {
		limit **int64
		found int64
		text  string
	}{{&f.Narrowing.MaxVCPU, found.CPUs, "%d CPUs"}, {&f.Narrowing.MaxMemoryMB, found.MemoryMB, "%d MiB of memory"}} {
		if size.found > 0 {
			*size.limit = &size.found
			has = append(has, fmt.Sprintf(size.text, size.found))
		}
	}
	if len(has) > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("resources: the host %q has %s; request less, or use a larger host", h.Name,
			strings.Join(has, " and ")))
	}
}

// hostEgress returns what the owner of h allows to enforce, and what would allow more.
func hostEgress(h extensions.Host) (extensions.Egress, []string) {
	have := extensions.EgressDenyOnly
	var reasons []string
	if h.AllowFirewall {
		have = extensions.EgressCIDR
	}
	switch {
	case checkProxyImage(h.ProxyImage) != nil:
		reasons = append(reasons, fmt.Sprintf("egress: the proxy image of the host %q is not pinned by a digest; write proxy_image as "+
			"name@sha256:…", h.Name))
	case h.ProxyImage != "":
		have = extensions.EgressDomain
	}
	switch have {
	case extensions.EgressDenyOnly:
		reasons = append(reasons, fmt.Sprintf("egress: the host %q has neither allow_firewall nor proxy_image; set allow_firewall = true for "+
			"networks, proxy_image for domains", h.Name))
	case extensions.EgressCIDR:
		reasons = append(reasons, fmt.Sprintf("egress: the host %q has no proxy; set its proxy_image for domains", h.Name))
	}
	return have, reasons
}

// rawFacts is the answer of sh/facts.sh: a host's text, to be judged here.
type rawFacts map[string]string

// archNames maps uname's machine names to Go's where they differ.
var archNames = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "armv6l": "arm", "i686": "386", "i386": "386", "loongarch64": "loong64",
}

// facts judges what the host reported. Each missing item becomes a note that says how to get it.
func (r rawFacts) facts(h extensions.Host) extensions.HostFacts {
	machine := extensions.Clean(r["machine"], 32)
	f := extensions.HostFacts{
		OS: strings.ToLower(extensions.Clean(r["os"], 32)), Arch: cmp.Or(archNames[machine], machine), CPUs: r.number("cpus"),
		MemoryMB: r.number("memory_kib") / 1024, FreeDisk: r.number("free_kib") / 1024,
		Docker: extensions.Clean(r["docker"], 64), Compose: extensions.Clean(r["compose"], 64),
		KVM: r["kvm"] != "", GPU: r["gpu"] != "", Expiry: extensions.ExpiryHost, Egress: extensions.EgressNone,
		SecretsAs: []extensions.SecretDelivery{extensions.SecretsEnv},
	}
	if r["memory"] != "" {
		f.SecretsAs = append(f.SecretsAs, extensions.SecretsFile)
	}
	deny, tried := r.denyNote()
	notes := []string{r.toolNote(), r.dockerNote(), r.composeNote(), deny}
	for i, n := range notes {
		if n != "" && (i < 3 || !tried) {
			f.Unfit = append(f.Unfit, n)
		}
	}
	if strings.Join(notes, "") == "" {
		f.Isolation = []extensions.Isolation{extensions.IsolationContainer}
		var note string
		f.Egress, note = r.egress(h)
		notes = append(notes, note)
	}
	if r["timer"] == "session" && r["kills"] == "yes" {
		f.Expiry = extensions.ExpirySweep
		notes = append(notes, fmt.Sprintf("logind ends processes with their login (KillUserProcesses), "+
			"so the host cannot end sandboxes on time; "+
			"run there: sudo loginctl enable-linger %s", extensions.Clean(r["login"], 64)))
	} else if r["timer"] == "session" && r["linger"] == "no" {
		notes = append(notes, fmt.Sprintf("lingering is off for the login, so a plain process instead of a service ends sandboxes on time; "+
			"run there: sudo loginctl enable-linger %s", extensions.Clean(r["login"], 64)))
	}
	if r["memory"] == "" {
		notes = append(notes, "/dev/shm is not a memory file system, so secrets cannot be files (secrets_as: file); mount a tmpfs there")
	}
	if r["forwarding"] == "refused" {
		notes = append(notes, "sshd forbids forwarding, so a program on the host relays ports of sandboxes; set AllowTcpForwarding yes in "+
			"sshd_config for direct connections")
	}
	for _, n := range notes {
		if n != "" {
			f.Notes = append(f.Notes, n)
		}
	}
	return f
}

func (r rawFacts) number(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(r[name]), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func (r rawFacts) toolNote() string {
	if r["missing"] == "" {
		return ""
	}
	return fmt.Sprintf("missing on the host: %s; install util-linux, tar, and coreutils or busybox there", extensions.Clean(r["missing"], 100))
}

func (r rawFacts) dockerNote() string {
	said := extensions.Clean(r["docker_said"], 300)
	switch version := r["docker"]; {
	case version == "" && said == "absent":
		return "Docker is missing; install Docker Engine: https://docs.docker.com/engine/install/"
	case version == "" && strings.Contains(strings.ToLower(said), "permission denied"):
		return fmt.Sprintf("the login may not use Docker; run there: sudo usermod -aG docker %s (that is as good as root on the host), or set "+
			"up rootless Docker",
			extensions.Clean(r["login"], 64))
	case version == "":
		return fmt.Sprintf("Docker does not answer (%s); start it there: sudo systemctl start docker", said)
	case olderThan(version, 20, 10):
		return fmt.Sprintf("Docker Engine %s is too old; install 20.10 or newer: https://docs.docker.com/engine/install/",
			extensions.Clean(version, 64))
	}
	return ""
}

func (r rawFacts) composeNote() string {
	const how = "install the Compose plugin, version 2.0 or newer: https://docs.docker.com/compose/install/linux/"
	switch version := r["compose"]; {
	case r["docker"] == "": // and so it was not asked for
		return ""
	case version == "":
		return "Docker Compose is missing; " + how
	case olderThan(version, 2, 0):
		return fmt.Sprintf("Docker Compose %s is too old; %s", extensions.Clean(version, 64), how)
	}
	return ""
}

// denyNote says why default deny is not proved. If the host tried, it cannot deny; if it could not try, it is
// unhealthy.
func (r rawFacts) denyNote() (note string, tried bool) {
	if r["proof"] != "" || r["against"] == "" {
		return "", false
	}
	tried = r["against_kind"] == "" || r["against_kind"] == string(extensions.KindUnsupported)
	err := failure{Kind: cmp.Or(r["against_kind"], string(extensions.KindUnsupported)), Message: r["against"], Remedy: r["cure"],
		Detail: r["against_said"]}.classify()
	cure := cmp.Or(extensions.RemedyOf(err),
		"it holds with a kernel that has macvlan and dummy interfaces, or with net.ipv4.conf.all.rp_filter=1")
	return fmt.Sprintf("%s; %s", extensions.Clean(err.Error(), 600), cure), tried
}

// egress returns what the host enforces once default deny is proved.
func (r rawFacts) egress(h extensions.Host) (have extensions.Egress, note string) {
	have = extensions.EgressDenyOnly
	if h.AllowFirewall {
		if r["rules"] == "works" {
			have = extensions.EgressCIDR
		} else {
			note = fmt.Sprintf("the firewall's rules cannot be read (%s); install iptables, and let the login use sudo without a password or be "+
				"in the docker group",
				extensions.Clean(r["rules"], 200))
		}
	}
	if h.ProxyImage == "" || checkProxyImage(h.ProxyImage) != nil {
		return have, note
	}
	if olderThan(r["compose"], 2, 23) {
		return have, note + fmt.Sprintf("Docker Compose %s cannot configure the proxy; install 2.23.1 or newer",
			extensions.Clean(r["compose"], 64))
	}
	return extensions.EgressDomain, note
}

// olderThan compares the first two numbers of a version. A version without numbers, such as "dev" for builds
// from source, counts as new.
func olderThan(version string, major, minor int) bool {
	parts := strings.SplitN(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".", 3)
	have, err := strconv.Atoi(parts[0])
	if err != nil {
		return false
	}
	if have != major || len(parts) < 2 {
		return have < major
	}
	digits := parts[1]
	if i := strings.IndexFunc(digits, func(c rune) bool { return c < '0' || c > '9' }); i >= 0 {
		digits = digits[:i]
	}
	low, err := strconv.Atoi(digits)
	return err == nil && low < minor
}
