// Package ready waits until a sandbox can be used: one loop around whatever a place has to look at, and the
// probe of a profile as a command that runs inside.
package ready

import (
	"context"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// How often and how long a probe tries if the profile does not say.
const (
	Interval = 500 * time.Millisecond
	Timeout  = 2 * time.Minute
)

// firstPause is the pause after the first look. The next are twice as long each, up to the interval: what is
// ready soon is found soon.
const firstPause = 20 * time.Millisecond

// told is how long a wait takes before it is worth telling.
const told = time.Second

// Wait is how to wait.
type Wait struct {
	Interval time.Duration // the longest pause; 0 = Interval
	Timeout  time.Duration // of the whole wait; 0 = Timeout; negative = as long as the context lasts
	// Now and Sleep are the clock; nil = the machine's. Sleep returns early when its context ends.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)
}

// Soon is Until for what a vendor does after it has promised it: what is not done when the time is over is
// KindUnavailable. what says what it still does, such as "Vendor still shows sbx-1".
func (w Wait) Soon(ctx context.Context, what string, look func(ctx context.Context) (done bool, err error)) error {
	err := w.Until(ctx, func(ctx context.Context) (string, error) {
		if done, err := look(ctx); done || err != nil {
			return "", err
		}
		return what, nil
	})
	if extensions.IsKind(err, extensions.KindTimeout) && ctx.Err() == nil {
		return extensions.Errorf(extensions.KindUnavailable, "%s after %s", what, w.Timeout).WithRemedy("do it again")
	}
	return err
}

// Gone is Soon for what a vendor removes: once it is gone, look says KindNotFound.
func (w Wait) Gone(ctx context.Context, what string, look func(ctx context.Context) error) error {
	return w.Soon(ctx, what, func(ctx context.Context) (bool, error) {
		err := look(ctx)
		if extensions.IsKind(err, extensions.KindNotFound) {
			return true, nil
		}
		return false, err
	})
}

// Of returns the wait that a profile asks for; nil = the defaults.
func Of(p *extensions.Probe) Wait {
	if p == nil {
		return Wait{}
	}
	return Wait{Interval: time.Duration(p.Interval), Timeout: time.Duration(p.Timeout)}
}

// Until looks until there is nothing left to wait for: look says why that is not so yet, "" = it is, and an
// error ends the wait. A look is ended with the wait. When its time is over, that is KindTimeout with the last
// reason that a whole look gave; a caller who left is KindInterrupted.
func (w Wait) Until(ctx context.Context, look func(ctx context.Context) (why string, err error)) error {
	w = w.complete()
	begun, looking := w.Now(), ctx
	if w.Timeout > 0 {
		var cancel context.CancelFunc
		looking, cancel = context.WithTimeout(ctx, w.Timeout)
		defer cancel()
	}
	last := ""
	for pause := min(firstPause, w.Interval); ; pause = min(2*pause, w.Interval) {
		why, err := look(looking)
		switch {
		case err == nil && why == "":
			return nil
		case err != nil && looking.Err() == nil:
			return err
		case err != nil:
			why = extensions.Clean(err.Error(), 400)
		}
		if looking.Err() != nil && last != "" {
			why = last + "; the next look was cut off"
		}
		last = why
		if w.Now().Sub(begun) >= told {
			extensions.Progress(ctx, "Waiting until it is ready", why)
		}
		if w.Timeout > 0 {
			if pause = min(pause, w.Timeout-w.Now().Sub(begun)); pause <= 0 {
				return w.late(looking, why)
			}
		}
		w.Sleep(looking, pause)
		if looking.Err() != nil {
			return w.late(looking, why)
		}
	}
}

func (w Wait) complete() Wait {
	if w.Interval <= 0 {
		w.Interval = Interval
	}
	if w.Timeout == 0 {
		w.Timeout = Timeout
	}
	if w.Now == nil {
		w.Now = time.Now
	}
	if w.Sleep == nil {
		w.Sleep = func(ctx context.Context, d time.Duration) {
			t := time.NewTimer(d)
			defer t.Stop()
			select {
			case <-ctx.Done():
			case <-t.C:
			}
		}
	}
	return w
}

// InTime returns err as Until tells it once ctx is over: a step that was cut off then says nothing about the place.
func InTime(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return Wait{}.late(ctx, extensions.Clean(err.Error(), 400))
}

func (w Wait) late(ctx context.Context, why string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return extensions.Errorf(extensions.KindInterrupted, "not ready yet: %s: %w", why, ctx.Err())
	}
	how := "in the caller's time"
	if w.Timeout > 0 {
		how = "after " + w.Timeout.String()
	}
	return extensions.Errorf(extensions.KindTimeout, "not ready %s: %s: %w", how, why, context.DeadlineExceeded).
		WithRemedy("look at the logs, or raise readiness.timeout")
}
