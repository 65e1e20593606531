package composessh

import (
	"os/exec"
	"strings"
	"testing"
)

// Rules go where the engine's own are, whichever variant of iptables that is,
// come back the same when placed twice, and leave what others placed alone.
func TestRulesGoWhereTheEngineIs(t *testing.T) {
	t.Parallel()
	const id = "sbx-aaaabbbbccccddddeeee"
	for _, variant := range []string{"-nft", "-legacy"} {
		o := newOutside(t) // tables of its own
		in := func(args ...string) (string, error) {
			out, err := exec.CommandContext(t.Context(), "ip", append([]string{"netns", "exec", o.name}, args...)...).CombinedOutput()
			return string(out), err
		}
		if out, err := in("iptables"+variant, "-N", "DOCKER-USER"); err != nil {
			t.Logf("no iptables%s here: %s", variant, out)
			continue
		}
		const theirs = "-A INPUT -s 203.0.113.9/32 -m comment --comment theirs -j DROP"
		if out, err := in(append([]string{"iptables" + variant}, strings.Fields(theirs)...)...); err != nil {
			t.Fatal(out)
		}
		run := func(call string) {
			t.Helper()
			text := script("toolbox", "subnet", "tries", "rules", "deny", "firewall") + `
id=` + id + ` subnet_ranges=10.213.0.0/16 guard_bridges="sxa0 sxa1" guard_allow="198.51.100.0/24,443 203.0.113.0/24,0"
` + call + "\n"
			if out, err := in("sh", "-c", text); err != nil {
				t.Fatalf("iptables%s: %s: %v: %s", variant, call, err, out)
			}
		}
		saved := func(tail string) string {
			out, _ := in("iptables" + tail + "-save")
			six, _ := in("ip6tables" + tail + "-save")
			return out + six
		}
		run(`firewall_put || { echo "$why"; exit 1; }`)
		once := saved(variant)
		if n := strings.Count(once, "sandboxer:"+id); n != 12 {
			t.Errorf("iptables%s: %d rules carry the id: %s", variant, n, once)
		}
		other := map[string]string{"-nft": "-legacy", "-legacy": "-nft"}[variant]
		if strings.Contains(saved(other), id) {
			t.Errorf("rules went to iptables%s", other)
		}
		run(`firewall_put || { echo "$why"; exit 1; }`)
		if again := rulesOnly(saved(variant)); again != rulesOnly(once) {
			t.Errorf("iptables%s: placed twice: %s, once: %s", variant, again, once)
		}
		run(`as_root sh -c "$firewall_job" sh remove "$id" "" ""`)
		if left := saved(variant); strings.Contains(left, id) || !strings.Contains(left, "--comment theirs") {
			t.Errorf("iptables%s: after the removal: %s", variant, left)
		}
		run(`as_root sh -c "$firewall_job" sh remove "$id" "" ""`)
	}
}

// rulesOnly drops counters and times.
func rulesOnly(saved string) string {
	var b strings.Builder
	for line := range strings.Lines(saved) {
		if strings.HasPrefix(line, "-A") {
			b.WriteString(line)
		}
	}
	return b.String()
}
