package vendor

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// used notes that somebody uses an object now.
func (o *Object) used(now time.Time) { o.UsedAt, o.Computed = now, 0 }

// Use keeps a live object from being idle until done is called.
func (v *Vendor) Use(ctx context.Context, ref string) (done func()) {
	note := func(more int) {
		_ = v.transact(context.WithoutCancel(ctx), func(st *state) error {
			if o := st.Objects[ref]; o != nil && o.Live() {
				o.Using += more
				o.used(st.now())
			}
			return nil
		})
	}
	note(1)
	return func() { note(-1) }
}

// IdleSince returns since when an object is idle; zero while it is used, and for one that no idleness ends.
func (o *Object) IdleSince() time.Time {
	if o.IdleAfter == 0 || o.State != StateRunning || o.Using > 0 {
		return time.Time{}
	}
	return o.UsedAt
}

// rest ends an object that has been idle for long enough by now, unless its deadline or its entrypoint did before.
func (o *Object) rest(now time.Time) {
	since := o.IdleSince()
	if since.IsZero() {
		return
	}
	at := since.Add(time.Duration(o.IdleAfter))
	exits := !o.ExitAt.IsZero() && !o.ExitAt.Add(o.Paused(now)).After(at)
	if now.Before(at) || !at.Before(o.Deadline) || exits {
		return
	}
	o.Idled = true
	o.end(StateExpired, at, "it was idle for "+time.Duration(o.IdleAfter).String())
}

// Compute makes what runs by itself in the object with that name use that much CPU time, now.
func (v *Vendor) Compute(name string, d time.Duration) error {
	return v.object(name, func(st *state, o *Object) error {
		o.Computed += Duration(d)
		if time.Duration(o.Computed) >= extensions.IdleCPU(time.Duration(o.IdleAfter)) {
			o.used(st.now())
		}
		return nil
	})
}
