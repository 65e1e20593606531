package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// A region that is demanded is where the vendor is asked to make it, and what
// it is priced by. It is never only compared with what the vendor could do.
func TestADemandedRegionReachesTheVendor(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]string{
		"profiles/us.yaml": profile("profile.us", "extension: ext.mine\nroute: { constraints: { region: us } }\n"),
		"profiles/eu.yaml": profile("profile.eu", "extension: ext.mine\nroute: { constraints: { region: eu } }\n"),
		"profiles/both.yaml": profile("profile.both", "extension: ext.mine\nroute: { constraints: { region: eu } }\n"+
			"options: { ext.mine: { region: us } }\n"),
		"prices/mine.yaml": prices("ext.mine", "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n  - { component: surcharge, region: us, unit: charged, "+
			"price: \"0.5\" }\n"),
	}, func(t *testing.T, b *bench) {
		for _, c := range []struct{ profile, region, hourly string }{{"profile.us", "us", "1.50"}, {"profile.eu", "eu", "1.00"},
			{"profile.mine", "eu", "1.00"}} {
			s := b.create(engine.Request{Profile: c.profile, Name: c.region + c.profile})
			all, err := vendor.At(b.vendor).Objects()
			if err != nil || len(all) != 1 || all[0].Region != c.region {
				t.Errorf("%s: %+v, %v", c.profile, all, err)
			}
			q, err := b.Quote(t.Context(), engine.Request{Profile: c.profile}, engine.QuoteOptions{})
			if err != nil || q.Estimate.Candidates[0].Hourly != c.hourly {
				t.Errorf("%s is priced %+v, %v", c.profile, q.Estimate, err)
			}
			b.end(s)
		}
		_, err := b.Create(t.Context(), engine.Request{Profile: "profile.both", Name: "x"}, nil, nil)
		all, lookErr := vendor.At(b.vendor).Objects()
		if !strings.Contains(told(err), `options.region is "us"`) || lookErr != nil || len(all) != 0 {
			t.Errorf("two regions: %s; %+v, %v", told(err), all, lookErr)
		}
	})
}

// What it costs there is set aside and paid, of a life that is made anew too.
func TestADemandedRegionIsPaidFor(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]string{
		"profiles/us.yaml": profile("profile.us", "extension: ext.mine\nroute: { constraints: { region: us } }\n"),
		"prices/mine.yaml": prices("ext.mine", "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n  - { component: surcharge, "+
			"region: us, unit: charged, price: \"0.5\" }\n"),
	}, func(t *testing.T, b *bench) {
		b.grant(10 * dollar)
		for profile, want := range map[string]int64{"profile.us": dollar + dollar/2, "profile.mine": dollar} {
			s := b.create(engine.Request{Profile: profile, Name: profile})
			for life := range 2 {
				held, err := b.book().Held(t.Context(), s.ID)
				if err != nil || len(held) != 1 || held[0].Amount != want {
					t.Errorf("%s, life %d: set aside %+v, %v", profile, life+1, held, err)
				}
				if life == 0 {
					if s, err = b.Recreate(t.Context(), s.Receipt, nil, nil); err != nil {
						t.Fatal(told(err))
					}
				}
			}
			r, err := b.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
			if err != nil || (profile == "profile.us") != strings.Contains(fmt.Sprint(r.Charges), "surcharge") {
				t.Errorf("%s: %+v, %v", profile, r.Charges, err)
			}
		}
	})
}
