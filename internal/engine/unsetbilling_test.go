package engine_test

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Who says nothing is paid for as the binding says: by the own key, whatever
// credit there is, or by the platform's, be there credit or not.
func TestWhatIsUnsetTakesTheBindingsBilling(t *testing.T) {
	t.Parallel()
	const cost = "cost: { per_hour: \"1.00 USD\" }\nbilling: "
	onBoth(t, map[string]string{
		"extensions/key.yaml": bound("ext.key", t.TempDir(), cost+"byok\n"), "profiles/key.yaml": profile("profile.key", "extension: ext.key\n"),
		"extensions/theirs.yaml": bound("ext.theirs", t.TempDir(), cost+"platform\n"), "profiles/theirs.yaml": profile("profile.theirs", "extension: ext.theirs\n"),
	}, func(t *testing.T, b *bench) {
		made := func(profile, name, payer string) {
			t.Helper()
			s := b.create(engine.Request{Profile: profile, Name: name})
			held, err := b.book().Held(t.Context(), s.ID)
			if err != nil || len(held) != 1 || held[0].Amount != dollar || held[0].Debit != "acme:"+payer+":USD" {
				t.Errorf("%s: %+v, %v", name, held, err)
			}
			b.end(s)
		}
		for profile, billing := range map[string]string{"profile.key": "byok", "profile.theirs": "platform"} {
			q, err := b.Quote(t.Context(), engine.Request{Profile: profile}, engine.QuoteOptions{})
			if err != nil || q.Estimate.Candidates[0].Billing != billing || q.Estimate.Candidates[0].Memo != (billing == "byok") {
				t.Errorf("%s: %+v, %s", profile, q.Estimate.Candidates, told(err))
			}
		}
		made("profile.key", "before", ledger.AccountBYOK)
		b.refused(b.Engine, engine.Request{Profile: "profile.theirs", Name: "x"}, extensions.KindExhausted,
			"0.00 available (limit: wallet of acme)")
		b.grant(10 * dollar)
		made("profile.key", "after", ledger.AccountBYOK)
		made("profile.theirs", "theirs", ledger.AccountWallet)
		b.refused(b.Engine, engine.Request{Profile: "profile.key", Name: "x", Billing: "platform"}, extensions.KindUnsupported,
			"viability.billing")
		b.refused(b.Engine, engine.Request{Profile: "profile.theirs", Name: "x", Billing: "byok"}, extensions.KindUnsupported,
			"viability.billing")
	})
}
