package composessh

import (
	"os/exec"
	"strings"
	"testing"
)

// Rules are not where the engine and firewall services work, come back the same when placed twice, and leave what others
// placed alone.
func TestRulesAreInATableOfTheirOwn(t *testing.T) {
	t.Parallel()
	const id = "sbx-aaaabbbbccccddddeeee"
	o := newOutside(t) // tables of its own
	in := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "ip", append([]string{"netns", "exec", o.name}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
		return string(out)
	}
	in(strings.Fields("iptables -t mangle -A INPUT -s 203.0.113.9/32 -m comment --comment theirs -j DROP")...)
	run := func(call string) {
		t.Helper()
		in("sh", "-c", script("toolbox", "subnet", "tries", "rules", "deny", "firewall")+`
id=`+id+` subnet_ranges=10.213.0.0/16 guard_bridges="sxa0 sxa1" guard_allow="198.51.100.0/24,443 203.0.113.0/24,0"
`+call+"\n")
	}
	saved := func(table string) string { return in("iptables-save", "-t", table) + in("ip6tables-save", "-t", table) }
	run(`firewall_put || { echo "$why"; exit 1; }`)
	once := saved("mangle")
	if n := strings.Count(once, "sandboxer:"+id); n != 12 {
		t.Errorf("%d rules carry the id: %s", n, once)
	}
	if strings.Contains(saved("filter"), id) {
		t.Error("the engine's table has rules of ours")
	}
	run(`firewall_put || { echo "$why"; exit 1; }`)
	if again := rulesOnly(saved("mangle")); again != rulesOnly(once) {
		t.Errorf("placed twice: %s, once: %s", again, once)
	}
	run(`as_root sh -c "$firewall_job" sh remove "$id" "" ""`)
	if left := saved("mangle"); strings.Contains(left, id) || !strings.Contains(left, "--comment theirs") {
		t.Errorf("after the removal: %s", left)
	}
	run(`as_root sh -c "$firewall_job" sh remove "$id" "" ""`)
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
