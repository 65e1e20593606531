package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/e2btest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/grpctest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal/modaltest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/openshelltest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

// rented is one vendor's account at its fake.
type rented struct {
	config map[string]any    // of the binding
	login  map[string]string // credentials, by name
	keys   []string          // those of them that are secret at the vendor, too
	// refuse makes the vendor refuse the next create, with a text.
	refuse func(text string)
	// confined looks at what the vendor heard.
	confined func(secret string)
}

// vendors are fakes of all that are rented, by handler.
func vendors(t *testing.T) map[string]rented {
	t.Helper()
	asJSON := http.Header{"Content-Type": {"application/json"}}
	refusal := func(on, body string) func(*vendortest.Wire) func(string) {
		return func(w *vendortest.Wire) func(string) {
			return func(text string) {
				w.Inject(vendortest.Fault{On: on, Status: http.StatusBadRequest, Header: asJSON, Body: fmt.Sprintf(body, text)})
			}
		}
	}
	e, d, v, m := e2btest.Start(t), daytonatest.Start(t), verceltest.Start(t), modaltest.Start(t)
	o := openshelltest.Start(t, openshelltest.OIDC)
	refusing := func(w *grpctest.Wire, on string) func(string) {
		return func(text string) { w.Inject(grpctest.Fault{On: on, Err: status.Error(codes.InvalidArgument, text)}) }
	}
	return map[string]rented{
		"e2b": {config: map[string]any{"api_url": e.APIURL, "sandbox_url": e.SandboxURL}, login: map[string]string{"api_key": e.Key},
			keys: []string{e.Key}, refuse: refusal("POST /sandboxes", `{"code":400,"message":%q}`)(e.Wire),
			confined: func(secret string) {
				e.Confined(t, map[string]string{e.Key: "X-Api-Key"}, secret, "POST /files", "POST /process.Process/StreamInput")
			}},
		"daytona": {config: map[string]any{"api_url": d.APIURL}, login: map[string]string{"jwt_token": d.JWT, "organization_id": d.Organization},
			keys: []string{d.JWT}, refuse: refusal("POST /sandbox", `{"statusCode":400,"message":%q}`)(d.Wire),
			confined: func(secret string) {
				d.Confined(t, map[string]string{d.JWT: "Authorization"}, secret, "POST /files/upload-v2")
			}},
		"vercel": {config: map[string]any{"api_url": v.APIURL}, login: map[string]string{"token": v.Token, "team_id": v.Team, "project_id": v.Project},
			keys: []string{v.Token}, refuse: refusal("POST /v3/sandboxes", `{"error":{"code":"bad_request","message":%q}}`)(v.Wire),
			confined: func(secret string) {
				v.Confined(t, map[string]string{v.Token: "Authorization"}, secret, "POST /v2/sandboxes/sessions/{sessionId}/fs/write")
			}},
		"modal": {config: map[string]any{"server_url": m.URL}, login: map[string]string{"token_id": m.TokenID, "token_secret": m.TokenSecret},
			keys: []string{m.TokenSecret}, refuse: refusing(m.Wire, "SandboxCreateV2"), confined: func(secret string) {
				confinedInCalls(t, m.Wire, m.TokenSecret, "x-modal-token-secret", secret, "TaskExecStdinWrite")
			}},
		// The client's secret goes to the issuer alone.
		"openshell": {config: map[string]any{"address": o.URL, "oidc_issuer": o.Issuer, "oidc_client_id": o.ClientID},
			login: map[string]string{"oidc_client_secret": o.Secret}, keys: []string{o.Secret}, refuse: refusing(o.Wire, "CreateSandbox"),
			confined: func(secret string) { confinedInCalls(t, o.Wire, o.Secret, "", secret, "ExecSandboxInteractive") }},
	}
}

// confinedInCalls is vendortest's Confined for calls of gRPC.
func confinedInCalls(t *testing.T, w *grpctest.Wire, key, header, secret, into string) {
	t.Helper()
	carried := 0
	for _, r := range w.Requests() {
		others := r.Header.Copy()
		delete(others, header)
		wire, err := proto.Marshal(r.Message)
		if err != nil {
			t.Fatal(err)
		}
		text := prototext.Format(r.Message) + string(wire) + fmt.Sprint(others)
		if vendortest.Shows(text, key) {
			t.Errorf("the key is in %s outside its header", r.Method)
		}
		switch has := vendortest.Shows(text, secret); {
		case has && r.Method == into:
			carried++
		case has:
			t.Errorf("%s has the sandbox's secret", r.Method)
		}
	}
	if carried == 0 {
		t.Errorf("no %s ever had the secret, so this shows nothing", into)
	}
}

// Terraform rents one sandbox of each vendor. A key of the account is in the header that opens the vendor's door, a secret
// of the sandbox inside it, and neither is anywhere else, not even after a vendor that repeats them.
func TestSecretsOfRentedSandboxesAreInsideAndNowhereElse(t *testing.T) {
	t.Parallel()
	all := vendors(t)
	b := newBed(t)
	c := newCLI(t, b)
	const secret = "CANARY-rented-4b8e21"
	canaries, logins, reveal := []string{secret}, map[string]map[string]string{}, map[string]map[string]engine.Secret{}
	for name, v := range all {
		binding := "ext." + name
		text, err := json.Marshal(map[string]any{"id": binding, "handler": name, "enabled": true, "config": v.config})
		if err != nil {
			t.Fatal(err)
		}
		b.write("catalog/extensions/"+binding+".yaml", string(text))
		b.profile("profile."+name, "extends: profile.base\nextension: "+binding+"\nttl: { default: 30m }\n")
		canaries = append(canaries, v.keys...)
		logins[binding], reveal[binding] = v.login, map[string]engine.Secret{}
		for field, value := range v.login {
			reveal[binding][field] = extensions.NewSecret(value)
		}
		v.refuse("I do not like " + secret + " nor " + strings.Join(v.keys, " nor "))
	}
	keys, err := json.Marshal(logins)
	if err != nil {
		t.Fatal(err)
	}
	c.write(`
variable "secret" {
  type      = string
  ephemeral = true
}
variable "keys" {
  type      = map(map(string))
  ephemeral = true
}
resource "sandboxer_sandbox" "rented" {
  for_each           = toset(["daytona", "e2b", "modal", "openshell", "vercel"])
  profile            = "profile.${each.key}"
  name               = each.key
  secrets_wo         = { TOKEN = var.secret }
  secrets_wo_version = 1
}
`)
	main := filepath.Join(c.dir, "main.tf")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("  account   = \"acme/web\"\n"), []byte("  account   = \"acme/web\"\n  credentials = var.keys\n"), 1)
	if err := os.WriteFile(main, text, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"TF_VAR_secret=" + secret, "TF_VAR_keys=" + string(keys), "TF_LOG=TRACE", "TF_LOG_PROVIDER=TRACE",
		"TF_LOG_PATH=" + filepath.Join(b.root, "trace.log")}
	run := func(want int, args ...string) string {
		t.Helper()
		out, code := c.try(env, args...)
		if code != want {
			t.Fatalf("terraform %v: exit %d\n%s", args, code, out)
		}
		for _, s := range canaries {
			if vendortest.Shows(out, s) {
				t.Errorf("terraform %v printed %s", args, s)
			}
		}
		return out
	}
	if out := run(1, "apply", "-auto-approve", "-no-color"); strings.Count(strings.Join(strings.Fields(out), " "), "I do not like") < len(all) {
		t.Errorf("a vendor's word is lost:\n%s", out)
	}
	run(0, "plan", "-out=p", "-no-color")
	run(0, "apply", "-no-color", "p")
	run(0, "show", "-json")
	e, err := engine.New(engine.Options{Extensions: testExtensions(), StateDir: b.state, Catalog: []string{b.catalog}, Account: "acme/web",
		Credentials: reveal})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	live, err := e.List(context.Background(), false)
	if err != nil || len(live) != len(all) {
		t.Fatalf("%d sandboxes, %v", len(live), err)
	}
	for _, s := range live {
		r, err := e.Exec(context.Background(), s.Receipt, engine.ExecRequest{Shell: `printf %s "$TOKEN"`})
		if err != nil || string(r.Stdout) != secret {
			t.Errorf("inside %s: %q, %v", s.Name, r.Stdout, err)
		}
	}
	inNoCommandLine(t, canaries...)
	run(0, "destroy", "-auto-approve", "-no-color")
	b.nowhere(slices.Compact(canaries)...)
	for _, v := range all {
		v.confined(secret)
	}
}
