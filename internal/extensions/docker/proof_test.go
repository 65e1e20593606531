package docker

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// proofs of default deny, by file: what was proved of an engine holds for the next site there.
var proofs sync.Map

func (s *site) shareProofs(t testing.TB) {
	dir := filepath.Join(s.config.StateDir, "deny")
	must(t, os.MkdirAll(dir, 0o700))
	proofs.Range(func(name, line any) bool {
		must(t, os.WriteFile(filepath.Join(dir, name.(string)), line.([]byte), 0o600))
		return true
	})
	t.Cleanup(func() {
		files, err := os.ReadDir(dir)
		must(t, err)
		for _, f := range files {
			line, err := os.ReadFile(filepath.Join(dir, f.Name()))
			must(t, err)
			proofs.Store(f.Name(), line)
		}
	})
}

// unproved is a site where nothing was proved.
func unproved(t *testing.T) *site {
	s := newSite(t)
	s.config.StateDir = t.TempDir()
	return s
}

// tries makes a closed sandbox, removes it, and reports whether its network was tried.
func (s *site) tries(t *testing.T, b *Backend) (tried bool) {
	t.Helper()
	b.onStep = func(at string) { tried = tried || at == "tried" }
	h, _, err := b.Provision(t.Context(), s.pair(t, "8080"))
	must(t, err)
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	return tried
}

func TestDefaultDenyIsProvedOncePerEngine(t *testing.T) {
	t.Parallel()
	s := unproved(t)
	if first, again := s.tries(t, s.open(t)), s.tries(t, s.open(t)); !first || again {
		t.Errorf("the first was tried: %t; the next: %t", first, again)
	}
	files, err := filepath.Glob(filepath.Join(s.config.StateDir, "deny", "*"))
	if must(t, err); len(files) != 1 {
		t.Fatalf("it is noted in %q", files)
	}
	must(t, os.WriteFile(files[0], []byte("1/another engine/its kernel/"), 0o600))
	if !s.tries(t, s.open(t)) {
		t.Error("the proof of another engine counted")
	}
	s.config.StateDir = ""
	b := s.open(t)
	if first, again := s.tries(t, b), s.tries(t, b); !first || again {
		t.Errorf("without a folder, the first was tried: %t; the next: %t", first, again)
	}
}

// An internal bridge is no closed network: its host is on it.
func TestServicesAreRefusedWhereDenyLeaks(t *testing.T) {
	t.Parallel()
	s := unproved(t)
	s.gate.swap.Store(&[2]string{`"Driver":"macvlan"`, `"Driver":"bridge" `})
	for range 2 { // what failed is not remembered as anything
		_, _, err := s.open(t).Provision(t.Context(), s.pair(t, "8080"))
		if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(err.Error(), "answered TCP") ||
			!strings.Contains(extensions.RemedyOf(err), "macvlan") {
			t.Errorf("%v; remedy %q", err, extensions.RemedyOf(err))
		}
		if left := s.residue(t); len(left) > 0 {
			t.Errorf("left %q", left)
		}
	}
	s.gate.swap.Store(nil)
	s.tries(t, s.open(t))
}

// Whatever kills a trial, and whatever the engine makes of it later: who ends the sandbox ends that, too.
func TestAKilledTrialLeavesNothing(t *testing.T) {
	t.Parallel()
	ended := func(t *testing.T, s *site, id extensions.ID) {
		t.Helper()
		b := s.open(t)
		h, err := b.Find(t.Context(), id)
		must(t, err)
		_, err = b.Teardown(t.Context(), h)
		must(t, err)
	}
	for _, step := range []string{"trial", "tried"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := unproved(t)
			spec, b, n := s.pair(t, "8080"), s.open(t), 3
			if step == "tried" {
				n++
			}
			if at := dieAt(b, n, func() { _, _, _ = b.Provision(t.Context(), spec) }); at != step {
				t.Fatalf("it died at %q", at)
			}
			ended(t, s, spec.ID)
		})
	}
	for _, name := range []string{nameKeeper, nameTrial, nameTrial + "-near"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := unproved(t)
			spec := s.pair(t, "8080")
			late := s.gate.holdBack("/containers/create?name=" + string(spec.ID) + name + " ")
			if _, _, err := s.open(t).Provision(t.Context(), spec); !extensions.IsKind(err, extensions.KindIndeterminate) {
				t.Fatalf("it was cut off: %v", err)
			}
			ended(t, s, spec.ID)
			late()
		})
	}
}
