package vendor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// pausedFile marks a paused object for the commands that run in it.
const pausedFile = "paused"

// Pause keeps a running object without running it; nothing to do for a paused one. On the trial plan its
// deadline stops too.
func (c *Client) Pause(ctx context.Context, ref string) error {
	return c.call(ctx, OpPause, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		o, err := st.live(ref)
		switch {
		case err != nil:
			return nil, err
		case o.State == StateCreated:
			return nil, fault(CodeConflict, "the object is not started yet")
		case o.State == StatePaused:
			return o, nil
		}
		if err := os.WriteFile(c.v.pausedMark(ref), nil, 0o600); err != nil {
			return nil, err
		}
		o.State, o.Since, o.Unending = StatePaused, st.now(), c.trial
		return o, nil
	})
}

// Resume runs a paused object again, until the deadline; nothing to do for a running one.
func (c *Client) Resume(ctx context.Context, ref string, deadline time.Time) error {
	return c.call(ctx, OpResume, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		o, err := st.live(ref)
		if err != nil || o.State != StatePaused {
			return o, err
		}
		if err := os.Remove(c.v.pausedMark(ref)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		now := st.now()
		o.Rested += Duration(now.Sub(o.Since))
		o.State, o.Since, o.Unending = StateRunning, now, false
		o.used(now)
		if !deadline.IsZero() {
			o.Deadline = deadline.UTC()
		}
		return o, nil
	})
}

func (v *Vendor) pausedMark(ref string) string { return filepath.Join(v.home(ref), pausedFile) }

// hold waits while the object is paused.
func (m *machine) hold(ctx context.Context) error {
	for {
		if _, err := os.Lstat(m.mark); err != nil {
			return ctx.Err()
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}
