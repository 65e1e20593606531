package daytona_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// ends are the vendor's ends of its sandboxes, by this machine's clock.
func ends(t *testing.T, v place, ahead time.Duration) (all []time.Time) {
	t.Helper()
	for _, s := range v.Sandboxes() {
		end, err := time.Parse(time.RFC3339Nano, s["autoDestroyAt"].(string))
		must(t, err)
		all = append(all, end.Add(-ahead))
	}
	return all
}

// The clocks of this machine and of the vendor may differ, either way.
func TestADeadlineIsTheSameByAnotherClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-5 * time.Minute, -3 * time.Second, 0, 3 * time.Second, 5 * time.Minute} {
		t.Run(fmt.Sprint("the vendor's ahead by ", ahead), func(t *testing.T) {
			t.Parallel()
			cfg := at(t)
			v := vendorOf(cfg)
			v.Clock().Advance(ahead)
			b, err := daytona.New().Open(t.Context(), cfg)
			must(t, err)
			defer func() { must(t, b.Close()) }()
			spec := exttest.Spec(t, cfg, exttest.WithTTL(3*time.Minute))
			h, _, err := b.Provision(t.Context(), spec)
			must(t, err)
			_, err = b.WaitReady(t.Context(), spec, h)
			must(t, err)
			for _, life := range []time.Duration{20 * time.Minute, 2 * time.Minute} {
				deadline := time.Now().Add(life)
				must(t, b.(extensions.Extender).Extend(t.Context(), h, deadline))
				if late := ends(t, v, ahead)[0].Sub(deadline); late < -time.Millisecond || late > time.Minute+3*time.Second {
					t.Errorf("it ends %s after its deadline", late)
				}
			}
			v.SetPlan(daytonatest.Plan{MaxTTL: time.Hour})
			err = b.(extensions.Extender).Extend(t.Context(), h, time.Now().Add(time.Hour+5*time.Second))
			if !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
				t.Errorf("what the plan cuts: %v", err)
			}
		})
	}
}

// One that is destroyed before its deadline has failed, whatever the time is here.
func TestAnEndBeforeTheDeadlineIsNoneByAnotherClock(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	vendorOf(cfg).Clock().Advance(-5 * time.Minute)
	b, err := daytona.New().Open(t.Context(), cfg)
	must(t, err)
	defer func() { must(t, b.Close()) }()
	h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg, exttest.WithTTL(3*time.Minute)))
	must(t, err)
	vendorOf(cfg).SetState(h.Ref, "destroying", "")
	all, err := b.Status(t.Context(), []extensions.Handle{h})
	if must(t, err); all[0].Phase != extensions.PhaseFailed {
		t.Errorf("%+v", all[0])
	}
}

func TestASandboxWithoutAnEndIsRefused(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
		cfg := at(t)
		v := vendorOf(cfg)
		v.Clock().Advance(ahead)
		b, err := daytona.New().Open(t.Context(), cfg)
		must(t, err)
		v.SetPlan(daytonatest.Plan{MaxTTL: -1})
		h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
		if !extensions.IsKind(err, extensions.KindUnsupported) || !h.IsZero() || len(v.Sandboxes()) > 0 {
			t.Errorf("ahead by %s: %s, %v", ahead, h.Encode(), err)
		}
		must(t, b.Close())
	}
}

// Creates wait for their turns at the vendor, and no deadline with them.
func TestADeadlineDoesNotWaitWithItsCreate(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	cfg.Values["creates_per_minute"] = int64(30)
	v := vendorOf(cfg)
	b, err := daytona.New().Open(t.Context(), cfg)
	must(t, err)
	defer func() { must(t, b.Close()) }()
	// Enough others wait for a turn that ours waits too, however slow this machine is.
	var others sync.WaitGroup
	defer others.Wait()
	queue := func(n int) {
		for range n {
			others.Go(func() {
				spec := exttest.Spec(t, cfg)
				spec.Options = map[string]any{"snapshot": "none"}
				if _, _, err := b.Provision(t.Context(), spec); !extensions.IsKind(err, extensions.KindUnsupported) {
					t.Error(err)
				}
			})
		}
		time.Sleep(300 * time.Millisecond)
	}
	queue(30 + 4)
	spec := exttest.Spec(t, cfg)
	spec.Deadline = time.Now().Add(time.Minute + time.Second) // two minutes, once rounded up; one, when its turn has come
	_, _, err = b.Provision(t.Context(), spec)
	must(t, err)
	if late := ends(t, v, 0)[0].Sub(spec.Deadline); late < -time.Millisecond || late > 30*time.Second {
		t.Errorf("it ends %s after its deadline", late)
	}
	queue(4)
	spec.ID, spec.Deadline = must1(extensions.NewID(nil)), time.Now().Add(3*time.Second)
	h, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindUnavailable) || extensions.RemedyOf(err) == "" || !h.IsZero() || v.Creates() != 1 {
		t.Errorf("beyond its deadline: %s, %v", h.Encode(), err)
	}
}
