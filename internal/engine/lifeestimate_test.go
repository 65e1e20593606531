package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// A sandbox that lives is estimated at its own place and by its own prices,
// wherever a new one would go and whatever that costs by now.
func TestTheEstimateOfALifeIsItsOwn(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.script(saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota})
	s := w.create(engine.Request{Profile: "profile.two", Name: "one", TTL: "1h"})
	w.script()
	book := filepath.Join(w.catalog, "prices", "prices.second.yaml")
	old, err := os.ReadFile(book)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(book, []byte(strings.Replace(string(old), `"0.001"`, `"0.005"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	e := w.reopen()
	for ttl, want := range map[time.Duration]string{30 * time.Minute: "1.80", time.Hour: "3.60", 2 * time.Hour: "7.20"} {
		got, ok := e.EstimateLife(s.Receipt, ttl)
		if !ok || len(got.Candidates) != 1 || got.Maximum != want || got.TotalHigh != want || got.HourlyLow != "3.60" ||
			got.HourlyHigh != "3.60" || got.Currency != "USD" || got.CatalogDigest == "" {
			t.Fatalf("%s: %t, %+v", ttl, ok, got)
		}
		if c := got.Candidates[0]; c.Extension != "ext.second" || c.Maximum != want || !c.Eligible || c.Order != 1 || c.Expiry != "native" {
			t.Errorf("%s: %+v", ttl, c)
		}
	}
	// A change keeps the prices of the life.
	later, err := e.Update(t.Context(), s.Receipt, engine.Request{Profile: "profile.two", Name: "one", TTL: "2h"}, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	if got, ok := e.EstimateLife(later.Receipt, 2*time.Hour); !ok || got.Maximum != "7.20" {
		t.Errorf("after the change: %t, %+v", ok, got)
	}
	bare := s.Receipt
	bare.Prices = ""
	if _, ok := e.EstimateLife(bare, time.Hour); ok {
		t.Error("estimated without prices")
	}
	w.clean()
}
