package e2b_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/e2btest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// The clocks of this machine and of the vendor may differ, either way.
func TestADeadlineIsTheSameByAnotherClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-4 * time.Minute, -3 * time.Second, 0, 3 * time.Second, 4 * time.Minute} {
		t.Run(fmt.Sprint("the vendor's ahead by ", ahead), func(t *testing.T) {
			t.Parallel()
			cfg := at(t)
			v := vendorOf(cfg)
			v.Clock().Advance(ahead)
			b, err := e2b.New().Open(t.Context(), cfg)
			must(t, err)
			defer func() { must(t, b.Close()) }()
			h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg, exttest.WithTTL(3*time.Minute)))
			must(t, err)
			ends := func() time.Time { return v.Sandboxes()[0].Ends.Add(-ahead) }
			for _, life := range []time.Duration{20 * time.Minute, 10 * time.Second} {
				deadline := time.Now().Add(life)
				must(t, b.(extensions.Extender).Extend(t.Context(), h, deadline))
				end := ends()
				if late := end.Sub(deadline); late < 0 || late > 3*time.Second {
					t.Errorf("it ends %s after its deadline", late)
				}
				for range 5 {
					_, err := b.(extensions.URLGiver).URL(t.Context(), h, 8080)
					must(t, err)
				}
				if late := ends().Sub(end); late > time.Second {
					t.Errorf("asked for a URL, it ends %s later", late)
				}
			}
			v.SetPlan(e2btest.Plan{MaxHours: 1})
			_, err = b.Teardown(t.Context(), h)
			must(t, err)
			h, _, err = b.Provision(t.Context(), exttest.Spec(t, cfg, exttest.WithTTL(3*time.Minute)))
			must(t, err)
			err = b.(extensions.Extender).Extend(t.Context(), h, time.Now().Add(time.Hour+5*time.Second))
			if !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
				t.Errorf("what the plan cuts: %v", err)
			}
		})
	}
}

// Creates wait for their turns at the vendor, and no deadline with them.
func TestADeadlineDoesNotWaitWithItsCreate(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	cfg.Values["plan"] = "hobby" // one create a second
	b, err := e2b.New().Open(t.Context(), cfg)
	must(t, err)
	defer func() { must(t, b.Close()) }()
	var all sync.WaitGroup
	deadline := time.Now().Add(time.Minute)
	for range 4 {
		all.Go(func() {
			spec := exttest.Spec(t, cfg)
			spec.Deadline = deadline
			if _, _, err := b.Provision(t.Context(), spec); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, s := range vendorOf(cfg).Sandboxes() {
		if late := s.Ends.Sub(deadline); late < 0 || late > 2*time.Second {
			t.Errorf("one ends %s after its deadline", late)
		}
	}
}
