package composessh

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// onHost is the rule of extensions.HostNarrower: what is left of the ceiling
// is the least of the descriptor, the host's arguments and what probing found.
func onHost(c extensions.Capabilities, h extensions.Host, facts *extensions.HostFacts) (extensions.Capabilities, []string) {
	egress, reasons := hostEgress(h, facts)
	if !egress.Includes(c.Egress) {
		c.Egress = egress
		c.CustomNetworkPolicy = egress.Includes(extensions.EgressCIDR)
	} else {
		reasons = nil
	}
	if facts == nil {
		return c, reasons
	}
	if facts.Expiry == extensions.ExpirySweep && c.Expiry != extensions.ExpirySweep {
		c.Expiry = extensions.ExpirySweep
		reasons = append(reasons, fmt.Sprintf("expiry: the host %q keeps no process that outlives a login, so nothing there ends a sandbox in time; enable lingering for the login (loginctl enable-linger)", h.Name))
	}
	if facts.SecretsAs != nil && !slices.Contains(facts.SecretsAs, extensions.SecretsFile) && slices.Contains(c.SecretsAs, extensions.SecretsFile) {
		c.SecretsAs = facts.SecretsAs
		reasons = append(reasons, fmt.Sprintf("secrets: the host %q has no memory file system at /dev/shm; mount a tmpfs there", h.Name))
	}
	if c.GPU && !facts.GPU {
		c.GPU = false
		reasons = append(reasons, fmt.Sprintf("gpu: the host %q has none that its Docker can pass on; install the NVIDIA container toolkit", h.Name))
	}
	return onMachine(c, h, facts, reasons)
}

// onMachine narrows to the machine's own size: Docker refuses more CPUs than
// there are, and memory that is not there kills what runs.
func onMachine(c extensions.Capabilities, h extensions.Host, facts *extensions.HostFacts, reasons []string) (extensions.Capabilities, []string) {
	var has []string
	for _, size := range []struct {
		limit **int64
		found int64
		text  string
	}{{&c.MaxVCPU, facts.CPUs, "%d CPUs"}, {&c.MaxMemoryMB, facts.MemoryMB, "%d MiB of memory"}} {
		if size.found <= 0 || *size.limit != nil && **size.limit <= size.found {
			continue
		}
		found := size.found
		*size.limit = &found
		has = append(has, fmt.Sprintf(size.text, found))
	}
	if len(has) > 0 {
		reasons = append(reasons, fmt.Sprintf("resources: the host %q has %s; ask for less, or use a larger host", h.Name, strings.Join(has, " and ")))
	}
	return c, reasons
}

// hostEgress is what can be enforced on h, and what would make it more.
func hostEgress(h extensions.Host, facts *extensions.HostFacts) (extensions.Egress, []string) {
	have := extensions.EgressDenyOnly
	var reasons []string
	if h.AllowFirewall {
		have = extensions.EgressCIDR
	}
	switch {
	case checkProxyImage(h.ProxyImage) != nil:
		reasons = append(reasons, fmt.Sprintf("egress: the proxy image of the host %q is not pinned by a digest; write proxy_image as name@sha256:…", h.Name))
	case h.ProxyImage != "":
		have = extensions.EgressDomain
	}
	switch have {
	case extensions.EgressDenyOnly:
		reasons = append(reasons, fmt.Sprintf("egress: the owner of the host %q allows no firewall rules and names no proxy; set allow_firewall = true for networks, proxy_image for domains", h.Name))
	case extensions.EgressCIDR:
		reasons = append(reasons, fmt.Sprintf("egress: the host %q names no proxy; set its proxy_image for domains", h.Name))
	}
	if facts != nil && len(facts.Isolation) == 0 && len(facts.Notes) > 0 {
		// What the owner has not allowed is beside the point there.
		return extensions.EgressNone, []string{fmt.Sprintf("egress: no network policy can be enforced on the host %q as it is: %s", h.Name, strings.Join(facts.Notes, "; "))}
	}
	if facts != nil && facts.Egress != "" && !facts.Egress.Includes(have) {
		reasons = append(reasons, fmt.Sprintf("egress: probing the host %q found that it enforces %q; its notes say what is missing (sandboxer host check)", h.Name, facts.Egress))
		have = facts.Egress
	}
	return have, reasons
}

// rawFacts is what sh/facts.sh answers: texts of a host, to be judged here.
type rawFacts map[string]string

// archNames are what Go calls the machines that uname names otherwise.
var archNames = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "armv6l": "arm", "i686": "386", "i386": "386", "loongarch64": "loong64",
}

// facts judges what the host told. What is missing becomes a note that says how
// to get it.
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
		notes = append(notes, fmt.Sprintf("logind ends the processes of a login with it (KillUserProcesses), so nothing on the host ends sandboxes in time; "+
			"run there: sudo loginctl enable-linger %s", extensions.Clean(r["login"], 64)))
	} else if r["timer"] == "session" && r["linger"] == "no" {
		notes = append(notes, fmt.Sprintf("lingering is off for the login, so what ends sandboxes in time is a plain process and not a service; "+
			"run there: sudo loginctl enable-linger %s", extensions.Clean(r["login"], 64)))
	}
	if r["memory"] == "" {
		notes = append(notes, "no memory file system is at /dev/shm, so secrets cannot be files (secrets_as: file); mount a tmpfs there")
	}
	if r["forwarding"] == "refused" {
		notes = append(notes, "sshd forbids forwarding, so ports of sandboxes are reached through a program inside; set AllowTcpForwarding yes in sshd_config for direct connections")
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
		return fmt.Sprintf("the login may not use Docker; run there: sudo usermod -aG docker %s (that is as good as root on the host), or set up rootless Docker",
			extensions.Clean(r["login"], 64))
	case version == "":
		return fmt.Sprintf("Docker does not answer (%s); start it there: sudo systemctl start docker", said)
	case olderThan(version, 20, 10):
		return fmt.Sprintf("Docker Engine %s is too old; 20.10 is the oldest that works: https://docs.docker.com/engine/install/", extensions.Clean(version, 64))
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

// denyNote tells why default deny is not proved. Where that was tried, the host
// cannot deny; where it could not be tried, the host is not well.
func (r rawFacts) denyNote() (note string, tried bool) {
	if r["proof"] != "" || r["against"] == "" {
		return "", false
	}
	tried = r["against_kind"] == "" || r["against_kind"] == string(extensions.KindUnsupported)
	err := failure{Kind: cmp.Or(r["against_kind"], string(extensions.KindUnsupported)), Message: r["against"], Remedy: r["cure"], Detail: r["against_said"]}.classify()
	cure := cmp.Or(extensions.RemedyOf(err), "a kernel with macvlan and dummy interfaces makes it hold, or net.ipv4.conf.all.rp_filter=1")
	return fmt.Sprintf("%s; %s", extensions.Clean(err.Error(), 600), cure), tried
}

// egress is what the host enforces once default deny is proved.
func (r rawFacts) egress(h extensions.Host) (have extensions.Egress, note string) {
	have = extensions.EgressDenyOnly
	if h.AllowFirewall {
		if r["rules"] == "works" {
			have = extensions.EgressCIDR
		} else {
			note = fmt.Sprintf("the firewall's rules cannot be read (%s); install iptables, and let the login use sudo without a password or be in the docker group",
				extensions.Clean(r["rules"], 200))
		}
	}
	if h.ProxyImage == "" || checkProxyImage(h.ProxyImage) != nil {
		return have, note
	}
	if olderThan(r["compose"], 2, 23) {
		return have, note + fmt.Sprintf("Docker Compose %s cannot give the proxy its configuration; 2.23.1 or newer can", extensions.Clean(r["compose"], 64))
	}
	return extensions.EgressDomain, note
}

// olderThan compares the first two numbers of a version. What has none, as
// builds from source say "dev", is taken to be new.
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
