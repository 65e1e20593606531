package profile_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// FuzzResolve: whatever a profile and a request say, the answer is a complete
// spec or a refusal, never a panic.
func FuzzResolve(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		sections := a.Files
		for i := 0; i < len(sections); i += 2 {
			f.Add(string(sections[i].Data), "2h", "repo", "./app", "A")
		}
	}
	f.Add(base, "1d", "", "", "B")
	f.Add(web, "-1h", "ref", "main", "B=C")
	f.Fuzz(func(t *testing.T, text, ttl, input, given, env string) {
		p, err := profile.Parse("p.yaml", []byte(text))
		if err != nil {
			if !extensions.IsKind(err, extensions.KindInvalid) {
				t.Fatalf("kind %s", extensions.KindOf(err))
			}
			return
		}
		s := set(t, base)
		s.Add(p)
		r, err := profile.Resolve(s, profile.Request{Profile: p.Ref(), TTL: ttl, Inputs: map[string]any{input: given},
			Env: map[string]string{env: given}})
		if err != nil {
			if !extensions.IsKind(err, extensions.KindInvalid) || strings.ContainsRune(err.Error(), 0) {
				t.Fatalf("refused with %q", err)
			}
			return
		}
		spec := r.Spec
		if spec.Hash() == "" || r.Digest == "" || spec.Profile != p.ID {
			t.Fatalf("no hash of %+v", spec)
		}
		if d := time.Duration(spec.TTL); d < profile.MinTTL || d > profile.MaxTTL || spec.MaxTTL > 0 && spec.TTL > spec.MaxTTL {
			t.Fatalf("ttl %s, max %s", d, time.Duration(spec.MaxTTL))
		}
		if !spec.Isolation.Meets(extensions.IsolationNone) || spec.Network.Default != "deny" && len(spec.Network.Egress) > 0 {
			t.Fatalf("walls of %+v", spec)
		}
		for k := range spec.Env {
			if !extensions.ValidEnvName(k) {
				t.Fatalf("env name %q", k)
			}
		}
	})
}
