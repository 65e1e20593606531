package composessh

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// loseRules takes the rules of a sandbox out of the host's firewall, as a reload
// without them does, and returns what was there.
func loseRules(t testing.TB, id extensions.ID) (before []string) {
	t.Helper()
	before = rulesOf(t, id)
	removed := 0
	for _, rule := range before {
		hook := strings.HasPrefix(rule, "-A FORWARD") || strings.HasPrefix(rule, "-A INPUT")
		if !hook || !strings.Contains(rule, "conntrack") && !strings.Contains(rule, "-j SBX-") {
			continue // the chain itself, or of IPv6
		}
		args := strings.Fields(strings.ReplaceAll(rule, `"`, ""))
		args[0] = "-D"
		if out, err := exec.CommandContext(t.Context(), "iptables", append([]string{"-w", "-t", "mangle"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("iptables %q: %v: %s", args, err, out)
		}
		removed++
	}
	if removed == 0 {
		t.Fatal("no rule could be removed")
	}
	slices.Sort(before)
	return before
}

// guarded is a sandbox that has rules in the firewall of its host.
func (s *site) guarded(t testing.TB, opts ...exttest.Option) (*Backend, extensions.Spec, extensions.Handle) {
	t.Helper()
	s.config.Host.AllowFirewall = true
	b := s.open(t)
	spec := s.spec(t, opts...)
	spec.Network.Egress = []extensions.EgressRule{{CIDR: "198.51.100.0/24", Port: 443}}
	return b, spec, s.provision(t, b, onImage(t, spec))
}

// pauseLoop stops the site's loop until the test ends, so that what a look does
// is not the loop's doing.
func (s *site) pauseLoop(t testing.TB) {
	t.Helper()
	var pid int
	if !waitFor(func() bool {
		text, _ := os.ReadFile(filepath.Join(s.root, "reaper"))
		_, err := fmt.Sscan(string(text), &pid)
		return err == nil
	}) {
		t.Fatal("there is no loop")
	}
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	if !waitFor(func() bool { return !hasTasks(pid) }) {
		t.Fatal("what the loop began does not end")
	}
}

// hasTasks reports whether something that the loop began still runs.
func hasTasks(loop int) bool {
	children, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range children {
		text, _ := os.ReadFile(file)
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(loop) {
			continue
		}
		if line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline")); !bytes.HasPrefix(line, []byte("sleep\x00")) {
			return true
		}
	}
	return false
}

// What something on the host took away is back although nobody looks.
func TestLostRulesComeBackByThemselves(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, spec, h := s.guarded(t)
	for range 2 {
		before := loseRules(t, h.ID)
		var after []string
		if !waitFor(func() bool {
			after = rulesOf(t, spec.ID)
			slices.Sort(after)
			return slices.Equal(before, after)
		}) {
			t.Fatalf("rules: %q, before they were %q", after, before)
		}
	}
}

// The rules of one that has ended do not come back.
func TestTheLoopEndsRulesWithTheirSandbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, _, h := s.guarded(t)
	other, _, _ := s.guarded(t)
	s.overdue(t, h.ID)
	if !waitFor(func() bool { return s.expired(h.ID) }) {
		t.Error("it has not ended")
	}
	if _, err := other.Status(t.Context(), nil); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(7 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if left := rulesOf(t, h.ID); len(left) > 0 {
			t.Fatalf("left behind: %q", left)
		}
	}
}

// Rules that are lost while they are placed are placed again: what is left then is
// not what they are compared with later.
func TestRulesAreKnownByAllOfThem(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: starts no other processes")
	}
	inShells(t, []string{"toolbox", "rules", "firewall"}, `
use_root
use_box sbx-x
mkdir "$box"
mode=guarded guard_bridges='sxa0 sxa1' guard_allow='198.51.100.0/24,443' subnet_ranges=10.0.0.0/8
as_root() {
	shift 4
	case $1 in
	put)
		printf '%s\n%s\n' "$3" "$4" >"$root/rules"
		[ -e /proc/net/if_inet6 ] || printf '%s\n' "$3" >"$root/rules"
		cp "$root/rules" "$root/all"
		echo put >>"$root/puts"
		[ "$(($(wc -l <"$root/puts")))" -gt "$losses" ] || sed -i '$d' "$root/rules"
		;;
	show) echo '*filter'; cat "$root/rules"; echo COMMIT ;;
	esac
}
losses=1
firewall_up
manifest_get guard_sum
sum=$(cksum <"$root/all")
[ "$value" = "${sum% *}" ] && echo all
cat "$root/puts"
losses=9
answer() { echo "refused: $1" | grep -o 'removes the rules'; }
json_string() { printf '"%s"' "$1"; }
firewall_up
`, "all\nput\nput\nremoves the rules")
}
