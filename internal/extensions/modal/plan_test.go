package modal_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal"
)

// The plan of a workspace is its binding's: what runs at once at most, which the engine keeps to.
func TestAPlanIsABindingsValue(t *testing.T) {
	t.Parallel()
	for plan, want := range map[string]int64{"": 100, "starter": 100, "team": 1000, "enterprise": 0} {
		values := map[string]any{}
		if plan != "" {
			values["plan"] = plan
		}
		d, err := modal.New().(extensions.Declarer).Declare(values)
		if most := d.Narrowing.MaxConcurrent; err != nil || (most == nil) != (want == 0) || most != nil && *most != want {
			t.Errorf("%q: %v, %v", plan, most, err)
		}
	}
}

// Creates keep the binding's pace by waiting, and one that has no time to wait leaves nothing.
func TestCreatesKeepThePaceOfTheBinding(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	cfg.Values = maps.Clone(cfg.Values)
	cfg.Values["creates_per_minute"] = 1
	b := open(t, cfg)
	_, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
	must(t, err)
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	h, _, err := b.Provision(short, exttest.Spec(t, cfg))
	if err == nil || !h.IsZero() || v.Creates() != 1 {
		t.Errorf("the second in a minute: %s, %v, %d creates", h.Encode(), err, v.Creates())
	}
	if _, err := modal.New().Open(t.Context(), extensions.Config{Values: map[string]any{"creates_per_minute": 0}}); extensions.FieldOf(err) !=
		"config.creates_per_minute" {
		t.Errorf("none in a minute: %v", err)
	}
}
