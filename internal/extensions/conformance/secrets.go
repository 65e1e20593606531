package conformance

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	canary = "canary-5f1c7e0b9d24-secret"
	// oddSecret contains what quoting and line handling would change.
	oddSecret = canary + "\n'\"$HOME`id`\\ %s\té\n\n"
	canaryKey = "canary-81b6f0a3c5d9-credential"
)

var secretChecks = []check{
	{name: "secrets/arrive-inside", power: extensions.PowerExec, secretsAs: extensions.SecretsEnv, run: func(e *env) {
		_, h, _ := e.ready(WithSecret("CANARY", canary))
		if got := e.sh(h, `printf %s "$CANARY"`); got != canary {
			e.Errorf("inside, the secret is %q", got)
		}
	}},
	{name: "secrets/canary-nowhere", secretsAs: extensions.SecretsEnv, run: func(e *env) { canaryNowhere(e, extensions.SecretsEnv) }},
	{name: "secrets/arrive-as-files", power: extensions.PowerExec, secretsAs: extensions.SecretsFile, run: func(e *env) {
		_, h, _ := e.ready(WithSecret("CANARY", oddSecret), WithSecret("EMPTY", ""), WithSecretsAs(extensions.SecretsFile))
		if got := e.sh(h, "cat "+extensions.SecretsDir+"/CANARY; printf ."); got != oddSecret+"." {
			e.Errorf("inside, the file of the secret has %q, want %q", got, oddSecret)
		}
		if got := e.sh(h, "cat "+extensions.SecretsDir+"/EMPTY; printf ."); got != "." {
			e.Errorf("inside, the file of an empty secret has %q", got)
		}
	}},
	{name: "secrets/files-are-no-environment", power: extensions.PowerExec, secretsAs: extensions.SecretsFile, run: func(e *env) {
		_, h, _ := e.ready(WithSecret("CANARY", canary), WithSecretsAs(extensions.SecretsFile))
		if got := e.sh(h, "env"); strings.Contains(got, canary) {
			e.Error("the secret is in the environment of a command, too")
		}
	}},
	{name: "secrets/files-canary-nowhere", secretsAs: extensions.SecretsFile, run: func(e *env) { canaryNowhere(e, extensions.SecretsFile) }},
	{name: "secrets/undeclared-refused", run: func(e *env) {
		for _, as := range extensions.SecretDeliveries {
			if slices.Contains(e.desc.Capabilities.SecretsAs, as) {
				continue
			}
			h, _, err := e.b.Provision(e.ctx(), e.spec(WithSecret("CANARY", canary), WithSecretsAs(as)))
			e.cleanUp(h)
			e.wantKind("provision with secrets as "+string(as)+", which is not declared", err, extensions.KindUnsupported)
		}
	}},
}

// canaryNowhere runs through a whole life with a secret in the sandbox, delivered as given, and one in every
// credential, and inspects everything that comes back.
func canaryNowhere(e *env, as extensions.SecretDelivery) {
	canaries := []string{canary, canaryKey}
	if len(e.desc.Credentials) > 0 {
		given := maps.Clone(e.cfg.Credentials)
		e.cfg.Credentials = map[string]extensions.Secret{}
		for _, c := range e.desc.Credentials {
			e.cfg.Credentials[c.Name] = extensions.NewSecret(canaryKey)
			if s := given[c.Name]; !s.IsZero() { // a place that takes no other
				e.cfg.Credentials[c.Name] = s
				canaries = append(canaries, s.Reveal())
			}
		}
		e.open()
	}
	seen := map[string]string{}
	note := func(what string, v any) {
		b, err := json.Marshal(v)
		if err != nil {
			e.Fatalf("%s: %v", what, err)
		}
		seen[what] = fmt.Sprintf("%s %+v", b, v)
	}
	secret := []Option{WithSecret("CANARY", canary), WithSecretsAs(as)}
	spec := e.spec(secret...)
	h, o := e.provision(spec)
	note("handle", h)
	note("first observation", o)
	ready, err := e.b.WaitReady(e.ctx(), spec, h)
	note("observation when ready", ready)
	noteError(seen, "wait ready", err)
	note("observation", e.observe(h))
	note("list", e.list(e.b))
	if e.desc.Has(extensions.PowerExec) {
		_, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Command: []string{"true"}, User: "no-such-user"})
		noteError(seen, "exec as a user that does not exist", err)
	}
	if e.desc.Has(extensions.PowerSnapshot) {
		snap := e.snapshot(e.snapshotter(), h)
		note("snapshot", snap)
	}
	_, _, err = e.b.Provision(e.ctx(), e.spec(append(secret, With(func(s *extensions.Spec) { s.ID = "bad" }))...))
	noteError(seen, "provision with a bad id", err)
	if e.h.Outside != nil {
		seen["the place outside the sandbox"] = strings.Join(e.h.Outside(e.TB, e.cfg), "\n")
	}
	note("report", e.teardown(h))
	if e.h.Outside != nil {
		seen["the place after the teardown"] = strings.Join(e.h.Outside(e.TB, e.cfg), "\n")
	}
	for what, text := range seen {
		for _, secret := range canaries {
			for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret))} {
				if strings.Contains(text, strings.TrimRight(form, "=")) {
					e.Errorf("a secret is in: %s", what)
				}
			}
		}
	}
}

func noteError(seen map[string]string, what string, err error) {
	if err != nil {
		seen["error: "+what] = fmt.Sprintf("%v %s", err, extensions.RemedyOf(err))
	}
}
