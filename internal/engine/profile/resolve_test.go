package profile_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const base = `
id: profile.base
version: "1.0.0"
isolation: { level: process }
network: { default: deny, egress: ["10.0.0.0/8:443"] }
ttl: { default: 1h, max: 24h }
setup: { instructions: "be nice", secret_refs: ["env://GH_TOKEN"] }
toolchain: { env: { A: a } }
`

const web = `
id: profile.web
version: "2.1.0"
extends: profile.base
extension: ext.compose-ssh
route: { strategy: lowest-cost, fallback: [ext.b], constraints: { max_cost_per_hour: "0.50 USD", require_isolation: container, region: eu, auth_mode: host-session } }
workspace: { mode: mirror, access: rw }
compose: { file: [compose.yaml, more.yaml], service: web, bundle: stack }
scope_default: agent
resources: { cpu: 1.5, memory_mb: 2048, gpu: H100 }
requires: { runtime: [npm], capabilities: [git] }
inputs:
  repo: { type: string, required: true, doc: "where the app is" }
  ref: { type: string, default: main }
  replicas: { type: number, default: 2 }
  debug: { type: bool }
  tags: { type: list }
  labels: { type: map }
  size: { type: string, enum: [small, large], default: small }
  slug: { type: string, pattern: "[a-z]+" }
readiness: { tcp: "localhost:80" }
placement: { prefer: [one], fallback: [two] }
reachability: { tunnel: ops, identity: warden }
metadata: { cost_class: saas-metered, latency_class: fast }
options: { ext.compose-ssh: { keep: true, deep: { list: [{ a: 1 }] } } }
`

func TestResolveBuildsTheWholeSpec(t *testing.T) {
	t.Parallel()
	got, err := profile.Resolve(set(t, base, web), profile.Request{
		Profile: "profile.web", Name: "e2e-main", TTL: "2h", Scope: "shared", Env: map[string]string{"B": "x; y $(z)\n"},
		Inputs: map[string]any{"repo": "./app", "debug": "true", "replicas": 3.0, "tags": []string{"a"},
			"labels": map[string]string{"k": "v"}},
		SecretNames: []string{"Z", "DB"},
	})
	if err != nil {
		t.Fatal(err)
	}
	cpu, memory := extensions.Milli(1500), int64(2048)
	want := extensions.Spec{
		Name: "e2e-main", Profile: "profile.web", Version: "2.1.0", Isolation: extensions.IsolationContainer,
		Network:   extensions.Network{Default: "deny", Egress: []extensions.EgressRule{{CIDR: "10.0.0.0/8", Port: 443}}},
		Workspace: extensions.Workspace{Mode: "mirror", Access: "rw", Repo: "./app", Ref: "main"},
		Compose:   &extensions.Compose{Files: []string{"compose.yaml", "more.yaml"}, Service: "web", Bundle: "stack"},
		Scope:     "shared", TTL: extensions.Duration(2 * time.Hour), MaxTTL: extensions.Duration(24 * time.Hour),
		Resources:    extensions.Resources{CPU: &cpu, MemoryMB: &memory, GPU: &extensions.GPU{Model: "H100", Count: 1}},
		Instructions: "be nice", SecretNames: []string{"DB", "GH_TOKEN", "Z"}, Toolchain: extensions.Toolchain{Env: map[string]string{"A": "a"}},
		Requires: extensions.Requires{Runtime: []string{"npm"}, Capabilities: []string{"git"}},
		Inputs: map[string]any{"repo": "./app", "ref": "main", "debug": true, "replicas": int64(3), "tags": []any{"a"},
			"labels": map[string]any{"k": "v"}, "size": "small"},
		Env:       map[string]string{"B": "x; y $(z)\n"},
		Readiness: &extensions.Probe{TCP: "localhost:80", Interval: extensions.Duration(time.Second), Timeout: extensions.Duration(time.Minute)},
		Settle:    extensions.Duration(extensions.SettleDefault),
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	rest := *got
	rest.Spec = extensions.Spec{}
	if len(rest.Digest) != 64 {
		t.Errorf("digest %q", rest.Digest)
	}
	rest.Digest = ""
	wantRest := profile.Resolved{
		Policy: profile.Policy{Extension: "ext.compose-ssh", Strategy: "lowest-cost", Fallback: []string{"ext.b"}, MaxCostPerHour: "0.50 USD",
			RequireIsolation: extensions.IsolationContainer, Region: "eu", AuthMode: "host-session"},
		Placement:    profile.PlacementRule{Prefer: []string{"one"}, Fallback: []string{"two"}},
		Reachability: profile.ReachabilityRule{Tunnel: "ops", Identity: "warden"},
		SecretRefs:   []profile.SecretRef{{Name: "GH_TOKEN", Ref: "env://GH_TOKEN"}},
		OptionsByExtension: map[string]map[string]any{"ext.compose-ssh": {"keep": true,
			"deep": map[string]any{"list": []any{map[string]any{"a": int64(1)}}}}},
		CostClass: "saas-metered", LatencyClass: "fast", ID: "profile.web", Version: "2.1.0",
		Lineage: []string{"profile.web@2.1.0", "profile.base@1.0.0"},
	}
	if diff := cmp.Diff(wantRest, rest); diff != "" {
		t.Errorf("the rest (-want +got):\n%s", diff)
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	s := set(t, base, web, "id: profile.none\nversion: \"1.0.0\"\nworkspace: {access: none}\ninputs: {repo: {type: string}}")
	ok := func(change func(*profile.Request)) profile.Request {
		req := profile.Request{Profile: "profile.web", Inputs: map[string]any{"repo": "./app"}}
		change(&req)
		return req
	}
	in := func(k string, v any) profile.Request { return ok(func(r *profile.Request) { r.Inputs[k] = v }) }
	ttl := func(s string) profile.Request { return ok(func(r *profile.Request) { r.TTL = s }) }
	deep := any("x")
	for range 40 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		name        string
		req         profile.Request
		want, field string
	}{
		{"an unknown profile", ok(func(r *profile.Request) { r.Profile = "profile.wbe" }), `there is no profile "profile.wbe"`, "profile"},
		{"ttl zero", ttl("0s"), "ttl is zero", "ttl"},
		{"ttl negative", ttl("-1h"), "ttl -1h is negative", "ttl"},
		{"ttl too short", ttl("1ms"), "ttl 1ms is below 1s", "ttl"},
		{"ttl above max", ttl("2d"), "ttl 2d is above the profile's maximum, 1d", "ttl"},
		{"ttl overflowing", ttl("999999999999h"), "overflows", "ttl"},
		{"ttl malformed", ttl("soon"), "is not a duration", "ttl"},
		{"a missing input", ok(func(r *profile.Request) { r.Inputs = nil }), "the input repo of profile.web@2.1.0 is required: where the app is",
			"inputs"},
		{"a null input", in("repo", nil), "the input repo of profile.web@2.1.0 is required", "inputs"},
		{"an undeclared input", in("rpeo", "x"), `profile.web@2.1.0 does not declare the input "rpeo"`, "inputs"},
		{"a mistyped string", in("repo", 5), "inputs.repo: want a value of type string, got the number 5", "inputs.repo"},
		{"a mistyped number", in("replicas", "many"), `inputs.replicas: want a value of type number, got the text "many"`, "inputs.replicas"},
		{"not a number", in("replicas", math.NaN()), "is not a finite number", "inputs.replicas"},
		{"an infinite text", in("replicas", "1e999"), "want a value of type number", "inputs.replicas"},
		{"a mistyped bool", in("debug", "yes"), "want a value of type bool", "inputs.debug"},
		{"a mistyped list", in("tags", "a"), "want a value of type list", "inputs.tags"},
		{"a mistyped map", in("labels", []any{}), "want a value of type map, got a list", "inputs.labels"},
		{"outside the enum", in("size", "huge"), `"huge" is not one of "small", "large"`, "inputs.size"},
		{"against the pattern", in("slug", "abc1"), `"abc1" does not match the pattern [a-z]+`, "inputs.slug"},
		{"the pattern and a line break", in("slug", "abc\n"), "does not match the pattern", "inputs.slug"},
		{"NUL in an input", in("size", "small\x00"), "contains a NUL character", "inputs.size"},
		{"NUL in a key", in("labels", map[string]any{"a\x00": 1}), "contains a NUL character", "inputs.labels"},
		{"an escape in an input", in("slug", "\x1b[31m"), "contains the control character U+001B", "inputs.slug"},
		{"an endless input", in("tags", deep), "nested deeper than 16 levels", "inputs.tags"},
		{"a huge input", in("size", strings.Repeat("x", 1<<20)), "at most 65536 are accepted", "inputs.size"},
		{"a channel", in("tags", make(chan int)), "is not accepted", "inputs.tags"},
		{"a line break in the repo", in("repo", "./a\nb"), "has a line break", "inputs.repo"},
		{"an option as repo", in("repo", "--upload-pack=touch /tmp/x"), "starts with -", "inputs.repo"},
		{"a password in the repo", in("repo", "https://u:hunter2@example.com/r.git"), "contains credentials", "inputs.repo"},
		{"a token in the repo", in("repo", "https://hunter2@example.com/r.git"), "contains credentials", "inputs.repo"},
		{"an option as ref", in("ref", "--force"), "is not a branch, tag or commit", "inputs.ref"},
		{"a refspec as ref", in("ref", "a:b"), "is not a branch, tag or commit", "inputs.ref"},
		{"a repo without a workspace", profile.Request{Profile: "profile.none", Inputs: map[string]any{"repo": "."}},
			"gives the sandbox no workspace", "inputs.repo"},
		{"an unknown scope", ok(func(r *profile.Request) { r.Scope = "mine" }), `"mine" is not a scope`, "scope"},
		{"a name with a line break", ok(func(r *profile.Request) { r.Name = "a\nb" }), `"a\nb" is not a name`, "name"},
		{"a name with NUL", ok(func(r *profile.Request) { r.Name = "a\x00" }), `"a\x00" is not a name`, "name"},
		{"a name for a shell", ok(func(r *profile.Request) { r.Name = "a;rm -rf /" }), `"a;rm -rf /" is not a name`, "name"},
		{"a long name", ok(func(r *profile.Request) { r.Name = strings.Repeat("a", 64) }), "is not a name", "name"},
		{"an env name", ok(func(r *profile.Request) { r.Env = map[string]string{"A=B": ""} }), `env: "A=B" is not an environment variable name`,
			"env"},
		{"NUL in an env value", ok(func(r *profile.Request) { r.Env = map[string]string{"A": "\x00"} }),
			"env: the value of A contains a NUL character", "env"},
		{"a secret's name", ok(func(r *profile.Request) { r.SecretNames = []string{"A B"} }),
			`secrets: "A B" is not an environment variable name`, "secrets_wo"},
		{"a secret and a variable", ok(func(r *profile.Request) { r.SecretNames = []string{"A"}; r.Env = map[string]string{"A": ""} }),
			`"A" is set twice: by env and by secrets`, "secrets_wo"},
		{"a secret and a reference", ok(func(r *profile.Request) { r.SecretNames = []string{"GH_TOKEN"} }),
			`"GH_TOKEN" is set twice: by secrets and by setup.secret_refs`, "secrets_wo"},
		{"a snapshot's id", ok(func(r *profile.Request) { r.FromSnapshot = &extensions.SnapshotRef{ID: "x"} }),
			`from_snapshot: "x" is not a snapshot ID`, "from_snapshot"},
		{"a sandbox's id", ok(func(r *profile.Request) { r.FromSandbox = "x" }), `from_sandbox: "x" is not a sandbox ID`, "from_sandbox"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := profile.Resolve(s, c.req)
			if got != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, %v; want %q", got, err, c.want)
			}
			if !extensions.IsKind(err, extensions.KindInvalid) || extensions.FieldOf(err) != c.field {
				t.Errorf("kind %s, field %q; want field %q", extensions.KindOf(err), extensions.FieldOf(err), c.field)
			}
			if strings.ContainsAny(err.Error(), "\x00\x1b\n") || strings.Contains(err.Error(), "hunter2") || len(err.Error()) > 1000 {
				t.Errorf("the message shows too much: %.200q", err)
			}
		})
	}
}

func TestSeveralMistakesAreToldTogether(t *testing.T) {
	t.Parallel()
	_, err := profile.Resolve(set(t, base, web),
		profile.Request{Profile: "profile.web", TTL: "0s", Name: "a b", Inputs: map[string]any{"rpo": 1}})
	if err == nil || strings.Count(err.Error(), "\n") != 3 || !strings.Contains(err.Error(), "did you mean repo?") {
		t.Errorf("got %v", err)
	}
}

func TestDefaultsWhereNoProfileSpeaks(t *testing.T) {
	t.Parallel()
	s := set(t, "id: profile.bare\nversion: \"1.0.0\"\n", "id: profile.short\nversion: \"1.0.0\"\nttl: { max: 10m }\n")
	r, err := profile.Resolve(s, profile.Request{Profile: "profile.bare"})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Spec; s.Isolation != extensions.IsolationProcess || s.Network.Default != "deny" || s.Scope != "session" ||
		s.Workspace.Mode != "remote-canonical" ||
		s.Workspace.Access != "rw" || time.Duration(s.TTL) != profile.DefaultTTL || s.MaxTTL != 0 ||
		r.Policy.Strategy != profile.StrategyPreferSelfHosted {
		t.Errorf("got %+v", r)
	}
	if _, err := profile.Resolve(s, profile.Request{Profile: "profile.bare", TTL: "367d"}); err == nil ||
		!strings.Contains(err.Error(), "above the longest possible ttl, 366d") {
		t.Errorf("without a maximum: %v", err)
	}
	if r, err := profile.Resolve(s, profile.Request{Profile: "profile.short"}); err != nil || time.Duration(r.Spec.TTL) != 10*time.Minute {
		t.Errorf("the default does not stay below the maximum: %v, %v", r, err)
	}
}

func TestHowSecretsAreDeliveredIsPartOfTheRequest(t *testing.T) {
	t.Parallel()
	resolve := func(line string) extensions.Spec {
		got, err := profile.Resolve(set(t, base, "id: profile.mine\nversion: \"1.0.0\"\nextends: profile.base\n"+line),
			profile.Request{Profile: "profile.mine", SecretNames: []string{"DB"}})
		if err != nil {
			t.Fatal(err)
		}
		return got.Spec
	}
	silent, env, file := resolve(""), resolve("secrets_as: env"), resolve("secrets_as: file")
	if silent.Delivery() != extensions.SecretsEnv || env.Delivery() != extensions.SecretsEnv || file.Delivery() != extensions.SecretsFile {
		t.Errorf("delivered as %s, %s, %s", silent.Delivery(), env.Delivery(), file.Delivery())
	}
	if silent.Hash() != env.Hash() {
		t.Error("saying the default makes another request")
	}
	if env.Hash() == file.Hash() {
		t.Error("another delivery is the same request")
	}
}

func TestRequiredIsolationRaisesTheFloorAndNeverLowersIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ level, must, want string }{{"process", "vm", "vm"}, {"vm", "process", "vm"}, {"none", "none", "none"}} {
		s := set(t, "id: profile.x\nversion: \"1.0.0\"\nisolation: {level: "+c.level+"}\nroute: {constraints: {require_isolation: "+c.must+"}}\n")
		r, err := profile.Resolve(s, profile.Request{Profile: "profile.x"})
		if err != nil || string(r.Spec.Isolation) != c.want {
			t.Errorf("%s and %s: %v, %v; want %s", c.level, c.must, r, err, c.want)
		}
	}
}

func TestDigestFollowsMeaningNotSpelling(t *testing.T) {
	t.Parallel()
	digest := func(texts ...string) string {
		r, err := profile.Resolve(set(t, texts...), profile.Request{Profile: "profile.x"})
		if err != nil {
			t.Fatal(err)
		}
		return r.Digest
	}
	const x = "id: profile.x\nversion: \"1.0.0\"\nttl: { default: 90m }\ntoolchain: { env: { A: a, B: b } }\n"
	if digest(x) != digest("# note\ntoolchain:\n  env: { B: b, A: \"a\" }\nversion: 1.0.0\nttl: { default: 1h30m }\nid: profile.x\n") {
		t.Error("the spelling changes the digest")
	}
	if digest(x) == digest(x+"isolation: { level: vm }\n") {
		t.Error("the content does not change the digest")
	}
	const child = "id: profile.x\nversion: \"1.0.0\"\nextends: profile.y\n"
	if digest(child, "id: profile.y\nversion: \"1.0.0\"\nttl: {default: 1h}\n") == digest(child,
		"id: profile.y\nversion: \"1.0.0\"\nttl: {default: 2h}\n") {
		t.Error("the parent's content does not change the digest")
	}
}

func TestResolvedSharesNothingWithTheSet(t *testing.T) {
	t.Parallel()
	s := set(t, base, web)
	req := profile.Request{Profile: "profile.web", Inputs: map[string]any{"repo": "./app"}}
	first, err := profile.Resolve(s, req)
	if err != nil {
		t.Fatal(err)
	}
	first.Spec.Toolchain.Env["A"] = "changed"
	first.Spec.Compose.Files[0] = "changed"
	*first.Spec.Resources.MemoryMB = 1
	first.OptionsByExtension["ext.compose-ssh"]["keep"] = false
	first.Spec.Requires.Runtime[0] = "changed"
	deep := func(r *profile.Resolved) map[string]any {
		return r.OptionsByExtension["ext.compose-ssh"]["deep"].(map[string]any)["list"].([]any)[0].(map[string]any)
	}
	deep(first)["a"] = "changed"
	second, err := profile.Resolve(s, req)
	if err != nil {
		t.Fatal(err)
	}
	if second.Spec.Toolchain.Env["A"] != "a" || second.Spec.Compose.Files[0] != "compose.yaml" || *second.Spec.Resources.MemoryMB != 2048 ||
		second.OptionsByExtension["ext.compose-ssh"]["keep"] != true || second.Spec.Requires.Runtime[0] != "npm" ||
		deep(second)["a"] != int64(1) {
		t.Errorf("a caller's change reached the set: %+v", second)
	}
}
