package ready

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// clock is time that passes only by waiting.
type clock struct {
	now    time.Time
	pauses []time.Duration
}

func (c *clock) on(w Wait) Wait {
	w.Now = func() time.Time { return c.now }
	w.Sleep = func(_ context.Context, d time.Duration) { c.now, c.pauses = c.now.Add(d), append(c.pauses, d) }
	return w
}

func TestPausesGrowToTheInterval(t *testing.T) {
	t.Parallel()
	c := &clock{}
	n := 0
	probe := &extensions.Probe{Interval: extensions.Duration(100 * time.Millisecond)}
	err := c.on(Of(probe)).Until(t.Context(), func(context.Context) (string, error) {
		if n++; n < 6 {
			return "not yet", nil
		}
		return "", nil
	})
	const ms = time.Millisecond
	want := []time.Duration{20 * ms, 40 * ms, 80 * ms, 100 * ms, 100 * ms}
	if err != nil || !slices.Equal(c.pauses, want) {
		t.Errorf("%v, %v", err, c.pauses)
	}
	c.pauses, n = nil, 4
	if err := c.on(Wait{Interval: time.Millisecond}).Until(t.Context(), func(context.Context) (string, error) {
		if n++; n < 6 {
			return "not yet", nil
		}
		return "", nil
	}); err != nil || !slices.Equal(c.pauses, []time.Duration{time.Millisecond}) {
		t.Errorf("%v, %v", err, c.pauses)
	}
}

func TestAWaitEndsAtItsTimeWithTheLastReason(t *testing.T) {
	t.Parallel()
	c := &clock{}
	err := c.on(Wait{Timeout: time.Second, Interval: 300 * time.Millisecond}).Until(t.Context(), func(context.Context) (string, error) {
		return "the last reason", nil
	})
	if !extensions.IsKind(err, extensions.KindTimeout) || !strings.Contains(err.Error(), "the last reason") || !strings.Contains(err.Error(), "1s") {
		t.Errorf("%v", err)
	}
	if got := c.now.Sub(time.Time{}); got != time.Second {
		t.Errorf("it took %s", got)
	}
	forever := 0
	if err := c.on(Wait{Timeout: -1, Interval: time.Hour}).Until(t.Context(), func(context.Context) (string, error) {
		if forever++; forever > 1000 {
			return "", nil
		}
		return "not yet", nil
	}); err != nil {
		t.Errorf("without a timeout: %v", err)
	}
}

func TestALookThatHangsEndsWithTheWait(t *testing.T) {
	t.Parallel()
	err := Wait{Timeout: 50 * time.Millisecond}.Until(t.Context(), func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	if !extensions.IsKind(err, extensions.KindTimeout) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = Wait{Timeout: -1}.Until(ctx, func(context.Context) (string, error) {
		cancel()
		return "not yet", nil
	})
	if !extensions.IsKind(err, extensions.KindInterrupted) || !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left: %v", err)
	}
}

func TestALookThatIsCutOffKeepsTheLastReason(t *testing.T) {
	t.Parallel()
	for _, cut := range []func(ctx context.Context) (string, error){
		func(ctx context.Context) (string, error) { return "", ctx.Err() },
		func(context.Context) (string, error) { return "the command was killed", nil },
	} {
		looks := 0
		err := Wait{Timeout: 200 * time.Millisecond}.Until(t.Context(), func(ctx context.Context) (string, error) {
			if looks++; looks == 1 {
				return "the probe's exit code is 3", nil
			}
			<-ctx.Done()
			return cut(ctx)
		})
		if !extensions.IsKind(err, extensions.KindTimeout) || looks != 2 ||
			!strings.Contains(err.Error(), "the probe's exit code is 3; the next look was cut off") || strings.Contains(err.Error(), "killed") {
			t.Errorf("%v after %d looks", err, looks)
		}
	}
}

func TestAnErrorEndsTheWait(t *testing.T) {
	t.Parallel()
	gone := extensions.Errorf(extensions.KindNotFound, "gone")
	looks := 0
	err := Wait{}.Until(t.Context(), func(context.Context) (string, error) {
		looks++
		return "", gone
	})
	if !errors.Is(err, gone) || looks != 1 {
		t.Errorf("%v after %d looks", err, looks)
	}
}
