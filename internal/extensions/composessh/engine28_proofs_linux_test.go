package composessh

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// Several logins, or roots, of one host prove at the same time and choose the
// same subnets: what somebody else was quicker with is no word against the host.
func TestAProofGoesElsewhereWhereItsSubnetsAreTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	a := runScript(t, b, `
use_root
fail() { answer "{\"failure\":$(json_string "$1: $2: $4")}"; exit 0; }
# The first look is from before somebody else made the network.
subnets_ask() { subnets_seen=; }
mkdir -p "$root/.proof"
box=$root/.proof networks='a b' subnet_prefixes='29 29'
subnets_allocate
theirs=${chosen% *}
rm -f "$box/manifest" "$root/subnets"
docker network create --internal -o com.docker.network.bridge.inhibit_ipv4=true --subnet "$theirs" --label "sandboxer.test=$image" "theirs-$$" >/dev/null </dev/null || fail test "$theirs"
id='' networks='n' subnet_prefixes='24' subnets_avoid='192.0.2.0/24' box=''
deny_prove
docker network rm "theirs-$$" >/dev/null </dev/null
answer "{\"proof\":$(json_string "$deny_proof"),\"left\":$(json_string "$box $networks $subnet_prefixes $subnets_avoid")}"`,
		map[string]string{"image": hosttest.Image(t)}, proofFiles...)
	if a["proof"] == "" {
		t.Errorf("%v", a)
	}
	if got := strings.TrimSpace(a["left"]); got != "n 24 192.0.2.0/24" {
		t.Errorf("the caller's variables are %q", got)
	}
	leftOfProofs(t, s)
	if left := docker(t, "network", "ls", "-q", "--filter", "label=sandboxer.test="+hosttest.Image(t)); left != "" {
		docker(t, "network", "rm", left)
		t.Error("the other's network is left behind")
	}
}
