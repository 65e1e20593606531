package vercel_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

// The clocks of this machine and of the vendor may differ, either way.
func TestADeadlineIsTheSameByAnotherClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-5 * time.Minute, -3 * time.Second, 0, 3 * time.Second, 5 * time.Minute} {
		t.Run(fmt.Sprint("the vendor's ahead by ", ahead), func(t *testing.T) {
			t.Parallel()
			cfg := at(t)
			cfg.Values["plan"] = "hobby"
			v := vendorOf(cfg)
			v.SetPlan(verceltest.Plan{Longest: 45 * time.Minute})
			v.Clock().Advance(ahead)
			b := opened(t, cfg)
			h := ready(t, cfg, b, exttest.WithTTL(3*time.Minute))
			began := time.Now()
			x := b.(extensions.Extender)
			for _, deadline := range []time.Time{began.Add(20 * time.Minute), began.Add(45*time.Minute - 5*time.Second)} {
				for range 3 { // what was done already is not done again
					must(t, x.Extend(t.Context(), h, deadline))
				}
				if late := v.Sandboxes()[0].Ends.Add(-ahead).Sub(deadline); late < 0 || late > 2*time.Second {
					t.Errorf("it ends %s after its deadline", late)
				}
			}
			for _, refused := range []time.Time{began.Add(45*time.Minute - 15*time.Second), began.Add(45*time.Minute + 5*time.Second)} {
				err := x.Extend(t.Context(), h, refused)
				if !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
					t.Errorf("to %s from its begin: %v", refused.Sub(began), err)
				}
			}
		})
	}
}

// A deadline that the plan just allows is not passed by what is added for the clocks.
func TestTheLongestLifeIsNotExceeded(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	cfg.Values["plan"] = "hobby"
	v.SetPlan(verceltest.Plan{Longest: 45 * time.Minute})
	b := opened(t, cfg)
	spec := exttest.Spec(t, cfg, exttest.WithTTL(3*time.Minute))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	for range 5 {
		must(t, b.(extensions.Extender).Extend(t.Context(), h, spec.CreatedAt.Add(45*time.Minute)))
	}
}

// Creates wait for their turns at the vendor, and no deadline with them.
func TestADeadlineDoesNotWaitWithItsCreate(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	b := opened(t, cfg)
	large := exttest.With(func(s *extensions.Spec) {
		cpu := extensions.Milli(8000)
		s.Resources.CPU = &cpu
	})
	// Enough others wait for a turn that ours waits too, however slow this machine is.
	var others sync.WaitGroup
	defer others.Wait()
	queue := func(n int) {
		for range n {
			others.Go(func() {
				spec := exttest.Spec(t, cfg, large)
				spec.Options = map[string]any{"runtime": "node1"}
				if _, _, err := b.Provision(t.Context(), spec); !extensions.IsKind(err, extensions.KindUnsupported) {
					t.Error(err)
				}
			})
		}
		time.Sleep(300 * time.Millisecond)
	}
	queue(200/8 + 4) // beside a minute's vCPUs of the plan
	spec := exttest.Spec(t, cfg, large)
	_, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	if late := vendorOf(cfg).Sandboxes()[0].Ends.Sub(spec.Deadline); late < 0 || late > time.Second {
		t.Errorf("it ends %s after its deadline", late)
	}
	queue(4)
	spec.ID, spec.Deadline = must1(extensions.NewID(nil)), time.Now().Add(3*time.Second)
	h, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindUnavailable) || extensions.RemedyOf(err) == "" || !h.IsZero() || vendorOf(cfg).Creates() != 1 {
		t.Errorf("beyond its deadline: %s, %v", h.Encode(), err)
	}
}
