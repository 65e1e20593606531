package conformance

import (
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// forkThen acts on a fork on its way out, and remembers it.
func forkThen(act func(b *broken, s spec, h handle)) func(*broken, ctx, spec) (handle, seen, error) {
	return func(b *broken, c ctx, s spec) (handle, seen, error) {
		h, o, err := b.wholeBackend.Provision(c, s)
		if err == nil && s.FromSandbox != "" {
			b.w.mu.Lock()
			b.w.forks[s.FromSandbox] = append(b.w.forks[s.FromSandbox], h)
			b.w.mu.Unlock()
			act(b, s, h)
		}
		return h, o, err
	}
}

// forkWith changes the spec of a fork.
func forkWith(change func(b *broken, s *spec)) func(*broken, ctx, spec) (handle, seen, error) {
	return provisionWith(func(b *broken, s *spec) {
		if s.FromSandbox != "" {
			change(b, s)
		}
	})
}

// keepingForks gives a fork a secret of its source.
func keepingForks(as extensions.SecretDelivery) func(*broken, ctx, spec) (handle, seen, error) {
	return forkWith(func(_ *broken, s *spec) {
		if len(s.Secrets) > 0 && s.Delivery() == as {
			s.Secrets = maps.Clone(s.Secrets)
			s.Secrets["ONLY"] = extensions.NewSecret(canary)
		}
	})
}

// within is a path inside a sandbox of the stub.
func within(b *broken, h handle, path string) string {
	return filepath.Join(place(b.cfg).Dir(), "sandboxes", h.Ref, "root", filepath.FromSlash(path))
}

var forkMutants = map[string]mutant{
	"fork/checking-makes-nothing": {canFork: func(b *broken, c ctx, h handle) error {
		if err := b.wholeBackend.CanFork(c, h); err != nil {
			return err
		}
		_, _, err := b.wholeBackend.Provision(c, one(b))
		return err
	}},
	"fork/copies": {provision: forkThen(func(b *broken, _ spec, h handle) {
		_ = os.Remove(within(b, h, "workspace/l"))
	})},
	"fork/copies-the-home": {provision: forkThen(func(b *broken, _ spec, h handle) {
		_ = os.Remove(within(b, h, "home/sandbox/f"))
	})},
	"fork/writes-apart": {provision: forkThen(func(b *broken, s spec, h handle) {
		if shared := within(b, h, "workspace/d/a"); os.Remove(shared) == nil {
			_ = os.Link(within(b, s.Source, "workspace/d/a"), shared)
		}
	})},
	"fork/leaves-its-source-running": {provision: forkThen(func(b *broken, s spec, _ handle) {
		_ = b.SetGeneration(cancelFree, s.Source, 9)
	})},
	"fork/is-found-by-its-own-id":   {provision: forkWith(func(_ *broken, s *spec) { s.Generation = 1 })},
	"fork/has-its-own-deadline":     {provision: forkWith(func(_ *broken, s *spec) { s.Deadline = s.Deadline.Add(time.Hour) })},
	"fork/gets-its-own-environment": {provision: forkWith(func(_ *broken, s *spec) { s.Env = map[string]string{"WORD": "source"} })},
	"fork/gives-secrets-anew":       {provision: keepingForks(extensions.SecretsEnv)},
	"fork/gives-secret-files-anew":  {provision: keepingForks(extensions.SecretsFile)},
	"fork/of-a-paused-one":          {describe: func(d *extensions.Descriptor) { d.Forks.RunningOnly = true }},
	"fork/five-at-once": {provision: func(b *broken, c ctx, s spec) (handle, seen, error) {
		if s.FromSandbox != "" {
			if remembered(b, string(s.FromSandbox)) {
				return handle{}, seen{}, extensions.Errorf(extensions.KindConflict, "it is being forked")
			}
			b.w.mu.Lock()
			b.w.seen[string(s.FromSandbox)] = true
			b.w.mu.Unlock()
			defer func() {
				time.Sleep(100 * time.Millisecond)
				b.w.mu.Lock()
				b.w.seen[string(s.FromSandbox)] = false
				b.w.mu.Unlock()
			}()
		}
		return b.wholeBackend.Provision(c, s)
	}},
	"fork/outlives-its-source": {provision: forkThen(func(*broken, spec, handle) {}),
		teardown: teardownThen(func(b *broken, h handle, _ *cleanup, _ *error) {
			for _, f := range b.w.forks[h.ID] {
				_ = os.Remove(within(b, f, "workspace/f"))
			}
		})},
	"fork/of-a-fork": {provision: func(b *broken, c ctx, s spec) (handle, seen, error) {
		b.w.mu.Lock()
		for _, forks := range b.w.forks {
			for _, f := range forks {
				if f.ID == s.FromSandbox {
					s.FromSandbox = ""
				}
			}
		}
		b.w.mu.Unlock()
		return forkThen(func(*broken, spec, handle) {})(b, c, s)
	}},
	"fork/gone-is-not-found": {canFork: func(*broken, ctx, handle) error { return nil }},
	"fork/of-another-account-is-refused": {provision: func(b *broken, c ctx, s spec) (handle, seen, error) {
		if b.cfg.Account == "another/account" {
			s.FromSandbox = ""
		}
		return b.wholeBackend.Provision(c, s)
	}},
	"fork/leaves-nothing": {provision: forkThen(func(b *broken, _ spec, _ handle) { litter(b) })},
}
