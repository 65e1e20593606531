package composessh

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var proofFiles = []string{"folder", "remove", "look", "toolbox", "subnet", "tries", "rules", "deny", "firewall", "proxy"}

// The proof sees what is wrong with an ordinary internal bridge: the host
// answers there to whoever does not ask for a route.
func TestABareBridgeIsNoProof(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"all", "default"} {
		if b, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + file + "/rp_filter"); err != nil || strings.TrimSpace(string(b)) == "1" {
			t.Skipf("net.ipv4.conf.%s.rp_filter filters by reverse path here: %v", file, err)
		}
	}
	s := newSite(t)
	b := s.open(t)
	a := runScript(t, b, `
use_root
fail() { answer "{\"failure\":$(json_string "$1: $2: $4")}"; exit 0; }
deny_prove
answer "{\"proof\":$(json_string "$deny_proof")}"`, map[string]string{"deny_ways": "bridge"}, proofFiles...)
	if f := a["failure"]; !strings.HasPrefix(f, "unsupported: ") || !strings.Contains(f, "ARP ") {
		t.Errorf("%v", a)
	}
	leftOfProofs(t, s)
}

// A host without perl proves with what a shell has; what a shell cannot try is
// not believed.
func TestProofWithoutPerl(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	const prove = `
use_root
perl() { return 127; }
fail() { answer "{\"failure\":$(json_string "$1: $2: $4")}"; exit 0; }
deny_prove
answer "{\"proof\":$(json_string "$deny_proof")}"`
	if a := runScript(t, b, prove, map[string]string{"deny_ways": "bridge"}, proofFiles...); !strings.Contains(a["failure"], "without perl") {
		t.Errorf("a bridge: %v", a)
	}
	if a := runScript(t, b, prove, nil, proofFiles...); a["proof"] == "" {
		t.Errorf("%v", a)
	}
	leftOfProofs(t, s)
}

// A proof whose neighbour can be reached fails: the tries do find what is there.
func TestAProofFindsWhatAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	for _, without := range []string{"", "perl() { return 127; }\n"} {
		a := runScript(t, b, without+`
use_root
fail() { answer "{\"failure\":$(json_string "$1: $2: $4")}"; exit 0; }
deny_network() {
	docker network create -d bridge --subnet "$2" --label "sandboxer.proof=$root" "sandboxer-proof-$$-$1" </dev/null
}
deny_prove
answer "{\"proof\":$(json_string "$deny_proof")}"`, map[string]string{"deny_ways": "bridge"}, proofFiles...)
		if f := a["failure"]; a["proof"] != "" || !strings.HasPrefix(f, "unsupported: ") || !strings.Contains(f, "answered TCP ") {
			t.Errorf("%q: an ordinary network: %v", without, a)
		}
	}
	leftOfProofs(t, s)
}

// Ten at once prove once; nothing of it stays but the line that says so.
func TestTenProveOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	proofs, proved := map[string]int{}, 0
	for range 10 {
		wg.Go(func() {
			a := runScript(t, b, `
use_root
proved=
deny_try() { proved=1; sleep 1; return 0; }
deny_prove
answer "{\"proof\":$(json_string "$deny_proof"),\"proved\":$(json_string "$proved")}"`, nil, proofFiles...)
			mu.Lock()
			defer mu.Unlock()
			proofs[a["proof"]]++
			if a["proved"] != "" {
				proved++
			}
		})
	}
	wg.Wait()
	if len(proofs) != 1 || proofs[""] > 0 || proved != 1 {
		t.Errorf("proofs %v, made %d times", proofs, proved)
	}
	leftOfProofs(t, s)
}

// A real proof takes about two seconds and its answer is taken for granted
// afterwards, but only by the same engine, kernel and boot.
func TestAProofIsKept(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	const prove = `
use_root
tried=
try_anew() { tried=1; deny_recipe=macvlan deny_proof="$deny_key macvlan"; }
[ -z "$counting" ] || deny_all_ways() { try_anew; }
deny_prove
answer "{\"proof\":$(json_string "$deny_proof"),\"tried\":$(json_string "$tried")}"`
	started := time.Now()
	a := runScript(t, b, prove, map[string]string{"counting": ""}, proofFiles...)
	t.Logf("proved in %s: %v", time.Since(started), a)
	proof := a["proof"]
	if proof == "" {
		t.Fatalf("%v", a)
	}
	if a := runScript(t, b, prove, map[string]string{"counting": "1"}, proofFiles...); a["tried"] != "" || a["proof"] != proof {
		t.Errorf("again: %v", a)
	}
	must(t, os.RemoveAll(s.root))
	if a := runScript(t, b, prove, map[string]string{"counting": "1", "deny_proved": proof}, proofFiles...); a["tried"] != "" ||
		a["proof"] != proof {
		t.Errorf("the proof that was kept here: %v", a)
	}
	for _, other := range []string{strings.Replace(proof, "1/", "0/", 1), strings.Fields(proof)[0], strings.Fields(proof)[0] + " none", "x"} {
		must(t, os.RemoveAll(s.root))
		if a := runScript(t, b, prove, map[string]string{"counting": "1", "deny_proved": other}, proofFiles...); a["tried"] == "" {
			t.Errorf("taken for a proof: %q", other)
		}
	}
	leftOfProofs(t, s)
}

// leftOfProofs fails for what a proof left behind, and ends the root as the last
// sandbox does.
func leftOfProofs(t testing.TB, s *site) {
	t.Helper()
	b := s.open(t)
	defer runScript(t, b, "use_root; lock_host; leave_root; unlock_host; answer '{}'", nil, "folder", "remove", "toolbox")
	filter := "label=sandboxer.proof=" + s.root
	if left := docker(t, "ps", "-aq", "--filter", filter) + docker(t, "network", "ls", "-q", "--filter", filter); left != "" {
		t.Errorf("left behind: %q", left)
	}
	if m, _ := filepath.Glob(filepath.Join(s.root, ".proof", "manifest")); len(m) > 0 {
		t.Errorf("left behind: %q", m)
	}
}

func TestProofsAreKeptPerHost(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	one, two := extensions.Host{Name: "one"}, extensions.Host{Name: "two"}
	proofOf(dir, one).Keep("1/a/b/c macvlan")
	proofOf(dir, two).Keep("bad\x1b[2J")
	proofOf("", one).Keep("x")
	if got := proofOf(dir, one).Read(); got != "1/a/b/c macvlan" {
		t.Errorf("%q", got)
	}
	if got := proofOf(dir, two).Read() + proofOf("", one).Read(); got != "" {
		t.Errorf("%q", got)
	}
	info, err := os.Stat(proofOf(dir, one).File)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}
