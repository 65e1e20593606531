package composessh

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// counted is a source that counts how often it is read.
type counted struct {
	folder
	reads *atomic.Int64
}

func (c counted) Open(ctx context.Context) (io.ReadCloser, error) {
	c.reads.Add(1)
	return c.folder.Open(ctx)
}

// Sandboxes that differ only in identity are checked once, and any other difference checks anew. A refusal is told to each.
func TestEqualStacksAreCheckedOnce(t *testing.T) {
	t.Parallel()
	const good, bad = "services: {web: {image: x, restart: always}}\n", "services: {web: {image: x, privileged: true}}\n"
	var reads atomic.Int64
	source := func(file string) counted {
		return counted{newFolder(t, map[string]string{"compose.yaml": file}), &reads}
	}
	cfg := extensions.Config{Binding: "ext.compose-ssh", Host: &extensions.Host{Name: "h", SSH: &extensions.SSH{Address: "127.0.0.1", User: "u"}}}
	spec := func(file string) extensions.Spec {
		return extensions.Spec{Network: extensions.Network{Default: "deny"}, Compose: &extensions.Compose{Files: []string{"compose.yaml"}},
			Workspace: extensions.Workspace{Source: source(file)}}
	}
	x := New().(extensions.SpecChecker)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			notes, err := x.CheckSpec(t.Context(), cfg, spec(good))
			if err != nil || len(notes) != 1 {
				t.Errorf("%q, %v", notes, err)
			} else {
				notes[0] = "changed by its reader"
			}
		})
	}
	all.Wait()
	if n := reads.Swap(0); n != 1 {
		t.Errorf("ten equal stacks were read %d times", n)
	}
	if notes, err := x.CheckSpec(t.Context(), cfg, spec(good)); err != nil || len(notes) != 1 || notes[0] == "changed by its reader" || reads.Load() != 0 {
		t.Errorf("again: %q, %v, read %d times", notes, err, reads.Load())
	}
	for what, change := range map[string]func(*extensions.Config, *extensions.Spec){
		"a variable":      func(_ *extensions.Config, s *extensions.Spec) { s.Env = map[string]string{"A": "1"} },
		"a secret's name": func(_ *extensions.Config, s *extensions.Spec) { s.SecretNames = []string{"TOKEN"} },
		"the network":     func(_ *extensions.Config, s *extensions.Spec) { s.Network.Default = "allow" },
		"an option":       func(_ *extensions.Config, s *extensions.Spec) { s.Options = map[string]any{"publish": publishNone} },
		"a label":         func(_ *extensions.Config, s *extensions.Spec) { s.Labels = map[string]string{"a": "b"} },
		"a size":          func(_ *extensions.Config, s *extensions.Spec) { s.Resources.MemoryMB = new(int64(64)) },
		"the files":       func(_ *extensions.Config, s *extensions.Spec) { s.Workspace.Source = source(good + "# more\n") },
		"the file's name": func(_ *extensions.Config, s *extensions.Spec) { s.Compose.Files = nil },
		"the host": func(c *extensions.Config, _ *extensions.Spec) {
			c.Host = &extensions.Host{Name: "i", SSH: c.Host.SSH, AllowFirewall: true}
		},
		"the binding":       func(c *extensions.Config, _ *extensions.Spec) { c.Values = map[string]any{"stop_grace": "3s"} },
		"an identity":       func(_ *extensions.Config, s *extensions.Spec) { s.ID = "sbx-abcdefghijklmnopqrst" },
		"a source unproved": func(_ *extensions.Config, s *extensions.Spec) { s.Workspace.Source = nameless{source(good)} },
	} {
		reads.Store(0)
		other, with := cfg, spec(good)
		change(&other, &with)
		if _, err := x.CheckSpec(t.Context(), other, with); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n := reads.Load(); n != 1 {
			t.Errorf("%s is another: read %d times", what, n)
		}
	}
	for range 2 {
		reads.Store(0)
		if _, err := x.CheckSpec(t.Context(), cfg, spec(bad)); !extensions.IsKind(err, extensions.KindInvalid) || reads.Load() != 1 {
			t.Errorf("a refused stack: %v, read %d times", err, reads.Load())
		}
	}
}

// nameless is a source without a digest.
type nameless struct{ counted }

func (nameless) Digest() string { return "" }

// What is remembered is bounded.
func TestChecksAreForgotten(t *testing.T) {
	t.Parallel()
	var c checks
	for i := range 3 * maxChecks {
		if _, err := c.once(string(rune('a'+i)), func() ([]string, error) { return nil, nil }); err != nil || len(c.known) > maxChecks {
			t.Fatalf("after %d: %d are remembered, %v", i, len(c.known), err)
		}
	}
}
