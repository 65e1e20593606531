package conformance

import (
	"net"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// bent lets a mutant change what is seen of sandboxes that idleness ends.
func bent(change func(b *broken, o *seen)) func(*broken, ctx, []handle) ([]seen, error) {
	return func(b *broken, c ctx, hs []handle) ([]seen, error) {
		all, err := b.wholeBackend.Status(c, hs)
		for i := range all {
			if remembered(b, "reaped "+string(all[i].ID)) {
				change(b, &all[i])
			}
		}
		return all, err
	}
}

// noting remembers which sandboxes idleness ends.
func noting(b *broken, c ctx, s spec) (handle, seen, error) {
	if s.IdleReap > 0 {
		b.w.mu.Lock()
		b.w.seen["reaped "+string(s.ID)] = true
		b.w.mu.Unlock()
	}
	return b.wholeBackend.Provision(c, s)
}

// idleFirst is since when one mutant saw a sandbox idle first, by ID.
var idleFirst sync.Map

var idleMutants = map[string]mutant{
	"idle/refused-where-nobody-enforces-it": {describe: func(d *extensions.Descriptor) {
		d.Capabilities.IdleReap = extensions.IdleReapNone
	}},
	"idle/ends-it": {provision: noting, status: bent(func(_ *broken, o *seen) { o.Idle = false })},
	"idle/says-since-when": {status: func(b *broken, c ctx, hs []handle) ([]seen, error) {
		all, err := b.wholeBackend.Status(c, hs)
		for i := range all {
			if !remembered(b, "reaped "+string(all[i].ID)) {
				all[i].IdleSince = all[i].StartedAt
			}
		}
		return all, err
	}, provision: noting},
	"idle/never-under-a-command": {provision: noting, status: bent(func(_ *broken, o *seen) {
		if o.Phase == extensions.PhaseReady && o.IdleSince.IsZero() {
			o.Phase, o.Idle = extensions.PhaseExpired, true
		}
	})},
	"idle/counts-a-connection": {dial: func(*broken, ctx, handle, string, int) (net.Conn, error) {
		here, there := net.Pipe()
		_ = there.Close()
		return here, nil
	}},
	"idle/counts-cpu": {provision: noting, status: bent(func(_ *broken, o *seen) {
		if o.IdleSince.IsZero() {
			idleFirst.Delete(o.ID)
		} else if first, known := idleFirst.LoadOrStore(o.ID, o.IdleSince); known {
			o.IdleSince = first.(time.Time)
		}
	}), exec: func(b *broken, c ctx, h handle, r extensions.ExecRequest) (extensions.ExecResult, error) {
		defer idleFirst.Delete(h.ID)
		return b.wholeBackend.Exec(c, h, r)
	}, resume: func(b *broken, c ctx, h handle, to time.Time) (seen, error) {
		idleFirst.Delete(h.ID)
		return b.wholeBackend.Resume(c, h, to)
	}},
	"idle/a-paused-one-is-not": {provision: noting, status: bent(func(_ *broken, o *seen) {
		if o.Phase == extensions.PhasePaused {
			o.IdleSince = o.StartedAt
		}
	}), pause: func(b *broken, c ctx, h handle) (seen, error) {
		o, err := b.wholeBackend.Pause(c, h)
		o.IdleSince = o.StartedAt
		return o, err
	}},
}
