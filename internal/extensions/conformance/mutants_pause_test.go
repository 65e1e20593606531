package conformance

import (
	"os"
	"path/filepath"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func paused(b *broken, c ctx, h handle) bool {
	all, err := b.wholeBackend.Status(c, []handle{h})
	return err == nil && all[0].Phase == extensions.PhasePaused
}

func conflict() error { return extensions.Errorf(extensions.KindConflict, "it is paused") }

var pauseMutants = map[string]mutant{
	"pause/pauses-and-resumes": { // once
		pause: func(b *broken, c ctx, h handle) (seen, error) {
			if remembered(b, string(h.ID)) {
				return seen{}, conflict()
			}
			return b.wholeBackend.Pause(c, h)
		},
		resume: func(b *broken, c ctx, h handle, to time.Time) (seen, error) {
			was := paused(b, c, h)
			b.w.mu.Lock()
			b.w.seen[string(h.ID)] = was
			b.w.mu.Unlock()
			return b.wholeBackend.Resume(c, h, to)
		}},
	"pause/idempotent": {pause: func(b *broken, c ctx, h handle) (seen, error) {
		if paused(b, c, h) {
			return seen{}, conflict()
		}
		return b.wholeBackend.Pause(c, h)
	}},
	"pause/says-since-when": {pause: func(b *broken, c ctx, h handle) (seen, error) {
		o, err := b.wholeBackend.Pause(c, h)
		o.Since = o.Since.Add(-time.Hour)
		return o, err
	}},
	"pause/holds-what-runs": {pause: func(b *broken, c ctx, h handle) (seen, error) {
		o, err := b.wholeBackend.Pause(c, h)
		_ = os.Remove(filepath.Join(place(b.cfg).Dir(), "sandboxes", h.Ref, "paused"))
		return o, err
	}},
	"pause/ends-what-runs-as-declared": {describe: func(d *extensions.Descriptor) { d.Pauses.EndsWhatRuns = true }},
	"pause/keeps-the-files": {pause: func(b *broken, c ctx, h handle) (seen, error) {
		_, _ = b.wholeBackend.Exec(c, h, extensions.ExecRequest{Shell: "rm -f f"})
		return b.wholeBackend.Pause(c, h)
	}},
	"pause/refuses-use": {exec: func(b *broken, c ctx, h handle, r extensions.ExecRequest) (extensions.ExecResult, error) {
		_, _ = b.wholeBackend.Resume(c, h, time.Time{})
		return b.wholeBackend.Exec(c, h, r)
	}},
	"pause/refuses-a-url": {url: func(b *broken, c ctx, h handle, port int) (extensions.URL, error) {
		if !paused(b, c, h) {
			return b.wholeBackend.URL(c, h, port)
		}
		_, _ = b.wholeBackend.Resume(c, h, time.Now().Add(time.Hour))
		u, err := b.wholeBackend.URL(c, h, port)
		_, _ = b.wholeBackend.Pause(c, h)
		return u, err
	}},
	"pause/works-in-another-process": {resume: func(b *broken, c ctx, h handle, to time.Time) (seen, error) {
		b.w.mu.Lock()
		mine := b.mine[h.ID]
		b.w.mu.Unlock()
		if !mine && paused(b, c, h) {
			return seen{}, conflict()
		}
		return b.wholeBackend.Resume(c, h, to)
	}},
	"pause/ends-at-its-deadline": {pause: func(b *broken, c ctx, h handle) (seen, error) {
		o, err := b.wholeBackend.Pause(c, h)
		if err == nil {
			err = b.wholeBackend.Extend(c, h, o.Deadline.Add(time.Hour))
		}
		return o, err
	}},
	"pause/extends": {extend: func(b *broken, c ctx, h handle, to time.Time) error {
		if paused(b, c, h) {
			return nil
		}
		return b.wholeBackend.Extend(c, h, to)
	}},
	"pause/resume-sets-the-deadline": {resume: func(b *broken, c ctx, h handle, _ time.Time) (seen, error) {
		return b.wholeBackend.Resume(c, h, time.Time{})
	}},
	"pause/teardown": {teardown: func(b *broken, c ctx, h handle) (cleanup, error) {
		if paused(b, c, h) {
			return cleanup{AlreadyGone: true}, nil
		}
		return b.wholeBackend.Teardown(c, h)
	}},
	"pause/set-generation": {setGeneration: func(b *broken, c ctx, h handle, g int64) error {
		if paused(b, c, h) {
			return conflict()
		}
		return b.wholeBackend.SetGeneration(c, h, g)
	}},
	"pause/snapshot": {snapshot: func(b *broken, c ctx, h handle, s keptSpec) (kept, error) {
		k, err := b.wholeBackend.Snapshot(c, h, s)
		if err == nil && paused(b, c, h) {
			_, err = b.wholeBackend.Resume(c, h, time.Time{})
		}
		return k, err
	}},
	"pause/gone-is-not-found": {pause: func(b *broken, c ctx, h handle) (seen, error) {
		o, err := b.wholeBackend.Pause(c, h)
		return o, swallow(err, extensions.KindNotFound)
	}},
}
