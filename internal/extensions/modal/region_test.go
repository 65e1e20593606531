package modal_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal"
)

// in demands a region.
func in(region string) exttest.Option {
	return exttest.With(func(s *extensions.Spec) { s.Region = region })
}

// A demanded region is asked for at both backends, and read back inside once the sandbox runs. Each that can be demanded is one
// where the vendor has places.
func TestADemandedRegionIsAskedForAndReadBack(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	d, err := modal.New().(extensions.Declarer).Declare(nil)
	must(t, err)
	if len(d.Narrowing.Regions) < 20 {
		t.Fatalf("only %v can be demanded", d.Narrowing.Regions)
	}
	for n, region := range append(d.Narrowing.Regions, "eu") {
		backend := exttest.With(func(s *extensions.Spec) {
			if n == 0 {
				withGPU(s)
			}
		})
		spec := exttest.Spec(t, cfg, in(region), backend)
		h, _, err := b.Provision(t.Context(), spec)
		must(t, err)
		if asked := v.Sandboxes()[0].Asked.GetSchedulerPlacement().GetRegions(); !slices.Equal(asked, []string{region}) {
			t.Errorf("%s: asked for %v", region, asked)
		}
		if _, err = b.WaitReady(t.Context(), spec, h); err != nil {
			t.Errorf("%s: %v", region, err)
		}
		_, err = b.Teardown(t.Context(), h)
		must(t, err)
	}
	spec := exttest.Spec(t, cfg)
	_, _, err = b.Provision(t.Context(), spec)
	must(t, err)
	if asked := v.Sandboxes()[0].Asked.GetSchedulerPlacement(); asked != nil {
		t.Errorf("nothing was demanded, and %v is asked for, which costs more", asked)
	}
}

// A sandbox that runs elsewhere, or says nothing that is known, is ended, and the next place may try.
func TestASandboxInAnotherRegionIsEnded(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	for place, region := range map[string]string{"eu-west-2": "eu-west", "us-east-1": "eu", "us-west4-a": "us-east", "nowhere": "us",
		"-": "us"} {
		v.RunIn(place)
		spec := exttest.Spec(t, cfg, in(region))
		h, _, err := b.Provision(t.Context(), spec)
		must(t, err)
		_, err = b.WaitReady(t.Context(), spec, h)
		if !extensions.IsKind(err, extensions.KindUnsupported) || extensions.FieldOf(err) != "region" || !strings.Contains(err.Error(), region) {
			t.Errorf("%s for %s: %v", place, region, err)
		}
		if left := v.Sandboxes(); len(left) > 0 {
			t.Errorf("%s for %s: %d sandboxes are left", place, region, len(left))
		}
	}
}

// What the vendor does not have is refused in the plan; whoever demands nothing asks for nothing.
func TestARegionThatModalDoesNotHaveIsRefusedInThePlan(t *testing.T) {
	t.Parallel()
	cfg := extensions.Config{Account: "acme/web"}
	for region, refused := range map[string]bool{"eu": false, "us-west": false, "": false, "us-west-2": true, "moon": true} {
		_, err := modal.New().(extensions.SpecChecker).CheckSpec(t.Context(), cfg, exttest.Spec(t, cfg, in(region)))
		if refused != extensions.IsKind(err, extensions.KindUnsupported) || refused && extensions.FieldOf(err) != "region" {
			t.Errorf("%q: %v", region, err)
		}
	}
}
