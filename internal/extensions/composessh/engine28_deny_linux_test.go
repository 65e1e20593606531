package composessh

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Engines since 28 have an option of their own for bridges without an address of
// the host. It proves no more than the older one: what takes the address away
// does not stop the host from answering for its others.
func TestAnIsolatedBridgeIsNoProofEither(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"all", "default"} {
		if b, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + file + "/rp_filter"); err != nil || strings.TrimSpace(string(b)) == "1" {
			t.Skipf("net.ipv4.conf.%s.rp_filter filters by reverse path here: %v", file, err)
		}
	}
	option := "com.docker.network.bridge.inhibit_ipv4=true"
	if engineMajor(t) >= 28 {
		option = "com.docker.network.bridge.gateway_mode_ipv4=isolated"
	}
	s := newSite(t)
	a := runScript(t, s.open(t), `
use_root
fail() { answer "{\"failure\":$(json_string "$1: $2: $4")}"; exit 0; }
deny_network() {
	docker network create -d bridge --internal -o `+option+` --subnet "$2" --label "sandboxer.proof=$root" "sandboxer-proof-$$-$1" </dev/null
}
deny_prove
answer "{\"proof\":$(json_string "$deny_proof")}"`, map[string]string{"deny_ways": "bridge"}, proofFiles...)
	if f := a["failure"]; !strings.HasPrefix(f, "unsupported: ") || !strings.Contains(f, "ARP ") {
		t.Errorf("%s: %v", option, a)
	}
	leftOfProofs(t, s)
}

func engineMajor(t testing.TB) int {
	t.Helper()
	version := docker(t, "version", "--format", "{{.Server.Version}}")
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		t.Fatalf("the engine's version is %q", version)
	}
	return n
}
