package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// canaries are secrets by every way they come in.
var canaries = map[string]string{
	"OWN": "canary-own-7c1b", "ENVREF": "canary-env-91ad", "FILEREF": "canary-file-55e2", "EXECREF": "canary-exec-3f80",
	"KEY": "canary-key-e04c",
}

// secretBench is a bench whose profiles take a secret by every kind of reference.
func secretBench(t *testing.T, log *bytes.Buffer) *bench {
	t.Helper()
	outside := t.TempDir()
	write(t, outside, "secret", canaries["FILEREF"]+"\n")
	if err := os.Chmod(filepath.Join(outside, "secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, outside, "print", "#!/bin/sh\ncat <<'X'\n"+canaries["EXECREF"]+"\nX\n")
	if err := os.Chmod(filepath.Join(outside, "print"), 0o700); err != nil {
		t.Fatal(err)
	}
	refs := fmt.Sprintf("setup:\n  secret_refs:\n    - { name: ENVREF, ref: \"env://SANDBOXER_TEST_CANARY\" }\n    - { name: FILEREF, ref: "+
		"\"file://%s/secret\" }\n    - { name: EXECREF, ref: \"exec://%s/print\" }\n", outside, outside)
	return newBench(t, onFiles(map[string]string{
		"profiles/profile.secret.yaml":       "id: profile.secret\nversion: \"1.0.0\"\nextension: ext.saas-stub\n" + common + refs,
		"profiles/profile.secret-local.yaml": "id: profile.secret-local\nversion: \"1.0.0\"\nextends: profile.quickstart\n" + refs,
	}), func(b *bench) {
		b.Credentials = map[string]map[string]engine.Secret{"ext.saas-stub": {"api_key": extensions.NewSecret(canaries["KEY"])}}
		b.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
}

// quiet demands that text holds no canary.
func quiet(t testing.TB, where, text string) {
	t.Helper()
	for name, c := range canaries {
		if strings.Contains(text, c) {
			t.Errorf("%s shows %s: %.300s", where, name, text)
		}
	}
}

// quietFiles demands it of every byte below dir but the insides of sandboxes.
func (b *bench) quietFiles(inside ...string) {
	b.t.Helper()
	err := filepath.WalkDir(b.StateDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what is gone or closed holds nothing
		}
		for _, in := range inside {
			if strings.HasPrefix(path, filepath.Join(b.StateDir, in)) {
				return nil
			}
		}
		text, err := os.ReadFile(path)
		if err == nil {
			quiet(b.t, path, string(text))
		}
		return nil
	})
	if err != nil {
		b.t.Error(err)
	}
}

func TestSecretsAreInsideAndNowhereElse(t *testing.T) {
	t.Setenv("SANDBOXER_TEST_CANARY", canaries["ENVREF"])
	for profile, inside := range map[string]string{"profile.secret": "saas-stub/sandboxes", "profile.secret-local": "no folder"} {
		t.Run(profile, func(t *testing.T) {
			var log bytes.Buffer
			b := secretBench(t, &log)
			ctx := context.Background()
			var told strings.Builder
			notify := func(n engine.Notice) { told.WriteString(n.Summary + n.Detail) }
			req := engine.Request{Profile: profile, Name: "one", TTL: "10m",
				Secrets: map[string]engine.Secret{"OWN": extensions.NewSecret(canaries["OWN"])}, SecretsVersion: 1}
			s, err := b.Create(ctx, req, func(s engine.Sandbox) { _, _ = fmt.Fprintf(&told, "%+v", s) }, notify)
			if err != nil {
				t.Fatal(err, extensions.RemedyOf(err))
			}
			for _, name := range []string{"OWN", "ENVREF", "FILEREF", "EXECREF"} {
				if got := b.sh(s.Receipt, "echo $"+name); strings.TrimSpace(got) != canaries[name] {
					t.Errorf("inside %s is %q", name, got)
				}
			}
			receipt, err := json.Marshal(s.Receipt)
			if err != nil {
				t.Fatal(err)
			}
			quiet(t, "the receipt", string(receipt))
			quiet(t, "the sandbox", fmt.Sprintf("%+v", s))
			again, err := b.Recreate(ctx, s.Receipt, req.Secrets, notify)
			if err != nil {
				t.Fatal(err)
			}
			b.quietFiles(inside)
			if _, err := b.Destroy(ctx, again.Receipt, engine.DestroyOptions{Notify: notify}); err != nil {
				t.Fatal(err)
			}
			events, err := b.Events(ctx, "", 0)
			if err != nil || len(events) == 0 {
				t.Fatal(err)
			}
			quiet(t, "the events", fmt.Sprintf("%+v", events))
			quiet(t, "the log", log.String())
			quiet(t, "a notice", told.String())
			b.quietFiles()
			b.clean()
		})
	}
}

func TestAVendorThatRepeatsASecretIsNotRepeated(t *testing.T) {
	t.Setenv("SANDBOXER_TEST_CANARY", canaries["ENVREF"])
	for name, rule := range map[string]saasstub.Rule{
		"refused":  {Op: vendor.OpCreate, Do: vendor.DoInvalid},
		"failed":   {Op: vendor.OpStart, Do: vendor.DoConflict},
		"throttle": {Op: vendor.OpCreate, Do: vendor.DoThrottle, Times: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			b := secretBench(t, &log)
			var text []string
			for _, c := range canaries {
				text = append(text, c)
			}
			rule.Message = "I do not like " + strings.Join(text, " nor ")
			b.script(rule)
			var told strings.Builder
			s, err := b.Create(context.Background(), engine.Request{Profile: "profile.secret", Name: "one",
				Secrets: map[string]engine.Secret{"OWN": extensions.NewSecret(canaries["OWN"])}}, nil,
				func(n engine.Notice) { told.WriteString(n.Summary + n.Detail) })
			if err == nil != (name == "throttle") {
				t.Fatalf("%v", err)
			}
			if err != nil {
				quiet(t, "the error", err.Error()+extensions.RemedyOf(err))
				quiet(t, "the error in full", fmt.Sprintf("%#v %+v", err, err))
				if !strings.Contains(err.Error(), "I do not like") {
					t.Errorf("the vendor's word is lost: %v", err)
				}
			}
			quiet(t, "the log", log.String())
			quiet(t, "a notice", told.String())
			quiet(t, "the sandbox", fmt.Sprintf("%+v", s))
			b.script()
			b.quietFiles("saas-stub/script.json", "saas-stub/sandboxes")
		})
	}
}
