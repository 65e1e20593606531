package provider

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// A canary is found inside the sandbox and in nothing of ours. It comes in by
// secrets_wo, by a provider credential and by a profile's secret reference.
func TestSecretsAreInsideAndNowhereElse(t *testing.T) {
	t.Parallel()
	for as, read := range map[string]string{
		"env":  `echo "$TOKEN $SBX_TEST_REFERENCE"`,
		"file": `cat /run/secrets/TOKEN; printf " "; cat /run/secrets/SBX_TEST_REFERENCE`,
	} {
		t.Run("at a vendor as "+as, func(t *testing.T) {
			t.Parallel()
			secretsStayInside(t, "extension: ext.saas-stub\nisolation: { level: container }\nsecrets_as: "+as+"\n", read)
		})
		t.Run("on this machine as "+as, func(t *testing.T) {
			t.Parallel()
			requireTerraform(t)
			requireLocal(t)
			secretsStayInside(t, "extension: ext.local\nsecrets_as: "+as+"\n", read)
		})
	}
}

// A place that cannot deliver them as the profile says is refused in the plan.
func TestADeliveryOfSecretsThatAPlaceLacksIsRefusedInThePlan(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	b.profile("profile.files", "extends: profile.base\nextension: ext.variables\nisolation: { level: container }\nsecrets_as: file\n")
	b.write("catalog/extensions/ext.variables.yaml",
		"id: ext.variables\ntitle: Variables only\nhandler: saas-stub\ncapabilities: { secrets_as: [env] }\n")
	c.write(`
resource "sandboxer_sandbox" "a" {
  profile            = "profile.files"
  name               = "refused"
  secrets_wo         = { TOKEN = "x" }
  secrets_wo_version = 1
}
`)
	out, code := c.try(nil, "plan", "-no-color")
	for _, want := range []string{"viability.secrets", "secrets_as: env"} {
		if code == 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d without %q:\n%s", code, want, out)
		}
	}
}

func secretsStayInside(t *testing.T, place, read string) {
	b := newBed(t)
	c := newCLI(t, b)
	const canary, reference, credential = "CANARY-wo-7d1f93", "CANARY-ref-51ac08", "CANARY-key-e90b77"
	b.profile("profile.secret", "extends: profile.base\n"+place+"setup: { secret_refs: [\"env://SBX_TEST_REFERENCE\"] }\n")
	text := `
variable "token" {
  type      = string
  ephemeral = true
}
resource "sandboxer_sandbox" "a" {
  profile            = "profile.secret"
  name               = "secretive"
  secrets_wo         = { TOKEN = var.token }
  secrets_wo_version = 1
}
`
	c.write(text)
	main := filepath.Join(c.dir, "main.tf")
	raw, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	with := strings.Replace(string(raw), "  account   = \"acme/web\"\n",
		"  account   = \"acme/web\"\n  credentials = { \"ext.saas-stub\" = { api_key = var.key } }\n", 1)
	with += "variable \"key\" {\n  type = string\n  ephemeral = true\n}\n"
	if err := os.WriteFile(main, []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"TF_VAR_token=" + canary, "TF_VAR_key=" + credential, "SBX_TEST_REFERENCE=" + reference,
		"TF_LOG=TRACE", "TF_LOG_PATH=" + filepath.Join(b.root, "trace.log"), "TF_LOG_PROVIDER=TRACE"}
	for _, args := range [][]string{
		{"plan", "-out=p", "-no-color"}, {"apply", "-no-color", "p"}, {"plan", "-no-color"}, {"show", "-json"},
	} {
		out, code := c.try(env, args...)
		if code != 0 {
			t.Fatalf("terraform %v: exit %d\n%s", args, code, out)
		}
		for _, s := range []string{canary, reference, credential} {
			if strings.Contains(out, s) {
				t.Errorf("terraform %v printed %s", args, s)
			}
		}
	}
	sb := b.only()
	res, err := b.engine().Exec(context.Background(), sb.Receipt, engine.ExecRequest{Shell: read})
	if err != nil || strings.TrimSpace(string(res.Stdout)) != canary+" "+reference {
		t.Errorf("inside: %q %q %v", res.Stdout, res.Stderr, err)
	}
	if res, err := b.engine().Exec(context.Background(), sb.Receipt, engine.ExecRequest{Command: []string{"env"}}); strings.Contains(place,
		"secrets_as: file") &&
		(err != nil || strings.Contains(string(res.Stdout), "CANARY")) {
		t.Errorf("the environment of a command is %q (%v)", res.Stdout, err)
	}
	b.nowhere(canary, reference, credential)
	inNoCommandLine(t, canary, reference, credential)
	if _, code := c.try(env, "destroy", "-auto-approve", "-no-color"); code != 0 {
		t.Error("destroy failed")
	}
	b.nowhere(canary, reference, credential)
}

// nowhere fails if a file of the bed contains one of the values. What the
// stub vendor keeps of a sandbox is inside it.
func (b *bed) nowhere(values ...string) {
	b.t.Helper()
	inside := b.vendor().Dir()
	err := filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, inside) || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, v := range values {
			if strings.Contains(string(raw), v) {
				b.t.Errorf("%s contains %s", path, v)
			}
		}
		return err
	})
	if err != nil {
		b.t.Error(err)
	}
}

// inNoCommandLine looks at every process of this machine.
func inNoCommandLine(t *testing.T, values ...string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue // it ended meanwhile
		}
		for _, v := range values {
			if strings.Contains(string(raw), v) {
				t.Errorf("%s contains %s: %q", f, v, raw)
			}
		}
	}
}
