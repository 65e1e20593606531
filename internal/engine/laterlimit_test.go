package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A later end is held against max_cost by the prices that the life is settled
// with, whatever the catalog says by then.
func TestALaterEndIsHeldAgainstMaxCost(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		ask := func(ttl, limit string) engine.Request {
			return engine.Request{Profile: "profile.mine", Name: "one", TTL: ttl, MaxCost: limit}
		}
		first := ask("1h", "1.50 USD")
		s := b.create(first)
		priced := func(price string) *engine.Engine {
			file := filepath.Join(b.catalog, "extensions", "ext.mine.yaml")
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(old), "cost:")
			if err := os.WriteFile(file, []byte(head+"cost: { per_hour: \""+price+"\" }\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return b.reopen()
		}
		refused := func(what string, err error) {
			t.Helper()
			for _, want := range []string{"sandbox " + string(s.ID) + " (one) costs up to 1.99", " USD for a ttl of 2h, 0.49",
				" USD above max_cost 1.50 USD", "sum ", "raise max_cost"} {
				if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(told(err), want) {
					t.Errorf("%s: told %q, want %q", what, told(err), want)
				}
			}
		}
		cheap := priced("0.10 USD") // by it two hours would be far below
		_, err := cheap.PlanUpdate(t.Context(), s.Receipt, first, ask("2h", "1.50 USD"))
		refused("planned", err)
		_, err = cheap.Update(t.Context(), s.Receipt, ask("2h", "1.50 USD"), nil)
		refused("changed", err)
		_, err = cheap.ExtendTTL(t.Context(), s.Receipt, 2*time.Hour)
		refused("extended by another", err)
		if got, err := cheap.Get(t.Context(), s.Receipt); err != nil || !got.ExpiresAt.Equal(s.ExpiresAt) {
			t.Errorf("refused, it ends at %s, not %s (%v)", got.ExpiresAt, s.ExpiresAt, err)
		}
		dear := priced("9.00 USD") // by it not even an hour would do
		for _, ttl := range []string{"30m", "80m"} {
			if _, err := dear.PlanUpdate(t.Context(), s.Receipt, first, ask(ttl, "1.50 USD")); err != nil {
				t.Errorf("planned %s: %s", ttl, told(err))
			}
			if _, err := dear.Update(t.Context(), s.Receipt, ask(ttl, "1.50 USD"), nil); err != nil {
				t.Errorf("changed to %s: %s", ttl, told(err))
			}
		}
		// An end that is not later is never too dear.
		if _, err := dear.Update(t.Context(), s.Receipt, ask("20m", "0.10 USD"), nil); err != nil {
			t.Error(told(err))
		}
	})
}
