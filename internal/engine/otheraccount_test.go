package engine_test

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Whoever asks, a sandbox that lives is paid for by the account it was made for,
// and held against that account's limits.
func TestALaterEndGoesByTheAccountOfTheLife(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(3 * dollar)
		s := b.create(engine.Request{Name: "one", TTL: "1h"})
		other := b.reopen(as("poor/else"))
		ask := func(ttl string) engine.Request {
			return engine.Request{Profile: "profile.mine", Name: "one", TTL: ttl}
		}
		if _, err := other.SetBudget(t.Context(), engine.BudgetSpec{Name: "none", Limit: "0.01 USD"}); err != nil {
			t.Fatal(err)
		}
		if _, err := other.PlanUpdate(t.Context(), s.Receipt, ask("1h"), ask("2h")); err != nil {
			t.Errorf("the plan of what its own account can pay: %s", told(err))
		}
		if _, err := other.PlanUpdate(t.Context(), s.Receipt, ask("1h"), ask("4h")); !strings.Contains(told(err),
			"3.00 available (limit: wallet of acme)") {
			t.Errorf("the plan of what it cannot pay: %s", told(err))
		}
		again := ask("2h")
		again.Account, again.Leaving = s.Account, []engine.ID{s.ID}
		if _, err := other.Plan(t.Context(), again); err != nil {
			t.Errorf("made again for its own account: %s", told(err))
		}
		again.Account = ""
		if _, err := other.Plan(t.Context(), again); !extensions.IsKind(err, extensions.KindExhausted) {
			t.Errorf("made for an account without money: %s", told(err))
		}
		later, err := other.Update(t.Context(), s.Receipt, ask("2h"), nil)
		if err != nil || later.Account != "acme/web" {
			t.Fatalf("%s: %s", later.Account, told(err))
		}
		if held := b.held(s.ID); held > 2*dollar || held < 2*dollar-dollar/60 {
			t.Errorf("%d is held of its own wallet for two hours", held)
		}
		if _, err := other.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Error(err)
		}
	})
}
