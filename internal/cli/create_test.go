package cli

import (
	"reflect"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// A copy is what its source was made with. Its name, life, secrets and consumer are its own, and what only Terraform
// reads stays there.
func TestACopyTakesFromItsSourceWhatItDoesNotSay(t *testing.T) {
	t.Parallel()
	was := engine.Request{Profile: "profile.x", Name: "source", Extension: "ext.theirs", Hosts: []string{"near"}, Isolation: "vm",
		Inputs: map[string]any{"repo": "/repo"}, TTL: "3h", Scope: "shared", ShareKey: "team", Consumer: engine.Consumer{RunID: "run-1"},
		Billing: "byok", Env: map[string]string{"A": "1", "B": "2"}, SecretNames: []string{"TOKEN"}, SecretsVersion: 2, MaxCost: "1.00 USD",
		Image: "docker.io/library/alpine:3.22", Resources: &engine.Sizes{MemoryMB: 1024}, OnConflict: engine.OnConflictReuse,
		FromSnapshot: "snp-aaaaaaaaaaaaaaaaaaaa", DesiredMode: "paused", DeletionProtection: true, Triggers: map[string]string{"v": "1"}}
	source := engine.Sandbox{Profile: "profile.x", Version: "1.0.0", Request: was}
	taken := engine.Request{Profile: "profile.x@1.0.0", Scope: "session", Extension: was.Extension, Isolation: was.Isolation,
		Inputs: was.Inputs, Env: was.Env, Billing: was.Billing, Image: was.Image, Resources: was.Resources}
	onHost := taken
	onHost.Extension, onHost.Hosts = "", []string{"far"}
	said := taken
	said.Extension, said.Billing, said.Name, said.Env = "ext.own", "platform", "own", map[string]string{"A": "own", "B": "2"}
	for name, c := range map[string]struct{ req, want engine.Request }{
		"nothing said":       {engine.Request{}, taken},
		"a host":             {engine.Request{Hosts: onHost.Hosts}, onHost},
		"all that flags say": {engine.Request{Extension: "ext.own", Billing: "platform", Name: "own", Env: map[string]string{"A": "own"}}, said},
	} {
		if got := like(source, c.req); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, c.want)
		}
	}
}
