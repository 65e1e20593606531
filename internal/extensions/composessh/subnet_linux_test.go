package composessh

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestSubnetRanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ranges string
		size   int
		good   bool
	}{
		{"10.213.0.0/16", 28, true},
		{"10.213.0.0/16 192.168.7.0/24 172.30.0.0/16 100.80.0.0/16", 26, true},
		{"8.8.8.0/24", 28, false},
		{"172.0.0.0/8", 28, false},
		{"192.168.0.0/15", 28, false},
		{"10.213.0.0/29", 28, false},
		{"10.0.0.0/8 10.213.0.0/16", 28, false},
	} {
		var ranges []netip.Prefix
		for _, r := range strings.Fields(c.ranges) {
			ranges = append(ranges, netip.MustParsePrefix(r).Masked())
		}
		if err := checkSubnets(ranges, c.size); (err == nil) != c.good || err != nil && !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s in /%d: %v", c.ranges, c.size, err)
		}
	}
}

func TestSubnetsFitTheirContainers(t *testing.T) {
	t.Parallel()
	for containers, want := range map[int]int{0: 28, 1: 28, 13: 28, 14: 27, 29: 27, 30: 26, 200: 24, 70000: 15} {
		if got := subnetPrefix(containers, 28); got != want {
			t.Errorf("%d containers get a /%d, want /%d", containers, got, want)
		}
	}
}

// allocate is what a create does: a folder, the host lock, the reservation.
const allocate = `
use_root
use_box "$id"
mkdir -p "$box"
subnets_look
lock_host
subnets_allocate
unlock_host
answer "{\"subnets\":$(json_string "$chosen")}"`

// Twenty scripts at once get subnets of their own, none of which docker's
// networks or the host's routes have.
func TestSubnetsAreDistinct(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.config.Values["subnets"] = []any{"10.198.0.0/22"}
	b := s.open(t)
	name := "sandboxer-test-" + strings.ToLower(randomName())
	docker(t, "network", "create", "--label", "sandboxer.test="+name, "--subnet", "10.198.0.64/27", name)
	t.Cleanup(func() { docker(t, "network", "rm", name) })
	taken := []netip.Prefix{netip.MustParsePrefix("10.198.0.64/27")}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			a := runScript(t, b, allocate, map[string]string{"id": fmt.Sprintf("sbx-%d", i), "networks": "a b", "subnet_prefixes": "28 27"},
				"subnet")
			mu.Lock()
			defer mu.Unlock()
			words := strings.Fields(a["subnets"])
			if len(words) != 2 {
				t.Errorf("script %d: %v", i, a)
				return
			}
			for k, w := range words {
				p, err := netip.ParsePrefix(w)
				if err != nil || p.Bits() != 28-k || p.Masked() != p || !netip.MustParsePrefix("10.198.0.0/22").Overlaps(p) {
					t.Errorf("script %d got %q: %v", i, w, err)
					return
				}
				for _, other := range taken {
					if other.Overlaps(p) {
						t.Errorf("%s and %s overlap", other, p)
					}
				}
				taken = append(taken, p)
			}
		})
	}
	wg.Wait()
	if len(taken) != 41 {
		t.Errorf("%d subnets", len(taken))
	}
}

// A range that is full says so with its numbers; a sandbox keeps what it has;
// one that expired gives it back.
func TestSubnetsRunOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.config.Values["subnets"] = []any{"10.199.0.0/27"}
	b := s.open(t)
	vars := map[string]string{"networks": "a", "subnet_prefixes": "28"}
	for i, want := range []string{"10.199.0.0/28", "10.199.0.16/28"} {
		vars["id"] = fmt.Sprintf("sbx-%d", i)
		if a := runScript(t, b, allocate, vars, "subnet"); a["subnets"] != want {
			t.Errorf("%d: %v, want %s", i, a, want)
		}
	}
	if a := runScript(t, b, allocate, vars, "subnet"); a["subnets"] != "10.199.0.16/28" {
		t.Errorf("asked again: %v", a)
	}
	vars["id"] = "sbx-2"
	a := runScript(t, b, "fail() { answer \"{\\\"failure\\\":$(json_string \"$1: $2\")}\"; exit 0; }\n"+allocate, vars, "subnet")
	if f := a["failure"]; !strings.HasPrefix(f, "exhausted: ") || !strings.Contains(f, "2 belong to other sandboxes") ||
		!strings.Contains(f, "10.199.0.0/27") {
		t.Errorf("a full range: %q", f)
	}
	runScript(t, b, "use_root; use_box sbx-0; manifest_put state expired; answer '{}'", nil)
	if a := runScript(t, b, allocate, vars, "subnet"); a["subnets"] != "10.199.0.0/28" {
		t.Errorf("after an expiry: %v", a)
	}
}

// Routes of the host that are no docker network are left alone, however they
// are listed: here as /proc/net/route has them.
func TestRoutesAreReadWithoutIP(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	const list = "; answer \"{\\\"routed\\\":$(json_string \"$routed\")}\""
	with := strings.Fields(runScript(t, b, "subnets_routed"+list, nil, "subnet")["routed"])
	without := strings.Fields(runScript(t, b, "ip() { return 127; }; subnets_routed"+list, nil, "subnet")["routed"])
	if len(without) == 0 {
		t.Fatal("no route was read")
	}
	for _, r := range without {
		p, err := netip.ParsePrefix(r)
		if err != nil || p.Bits() <= 3 {
			t.Errorf("%q: %v", r, err)
		}
	}
	// Other tests make and remove networks meanwhile; docker0 stays.
	for _, r := range without {
		if strings.HasPrefix(r, "172.17.") && !slices.Contains(with, r) {
			t.Errorf("%s is not in %q", r, with)
		}
	}
}

// More networks than the engine's own pools have.
func TestSixtyNetworks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	name := "sandboxer-test-" + strings.ToLower(randomName())
	networks := make([]string, 60)
	for i := range networks {
		networks[i] = fmt.Sprintf("n%d", i)
	}
	vars := map[string]string{"id": "sbx-0", "networks": strings.Join(networks, " "), "name": name, "subnet_prefixes": ""}
	maps.Copy(vars, map[string]string{"subnet_size": "28", "subnet_ranges": "10.197.0.0/20"})
	t.Cleanup(func() {
		if made := strings.Fields(docker(t, "network", "ls", "-q", "--filter", "label=sandboxer.test="+name)); len(made) > 0 {
			docker(t, append([]string{"network", "rm"}, made...)...)
		}
	})
	a := runScript(t, b, strings.Replace(allocate, "answer", `
bad=
for word in $chosen; do
	docker network create --internal --label "sandboxer.test=$name" --subnet "$word" "$name-${word%/*}" >/dev/null 2>&1 </dev/null || bad="$bad $word"
done
subnets_look
answer "{\"bad\":$(json_string "$bad"),\"seen\":$(json_string "$(count_words $subnets_seen)")}"
exit 0
answer`, 1), vars, "subnet")
	if a["bad"] != "" || a["failure"] != "" {
		t.Errorf("refused: %v", a)
	}
	if made := strings.Fields(docker(t, "network", "ls", "-q", "--filter", "label=sandboxer.test="+name)); len(made) != 60 {
		t.Errorf("%d networks", len(made))
	}
}
