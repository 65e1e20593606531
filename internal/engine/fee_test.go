package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// With the user's own key the wallet pays the fee and nothing else: it is set
// aside for the ttl, refused where there is too little, and settled.
func TestAFeeComesOutOfTheWalletAlthoughAnotherPaysTheVendor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBench(t, onFiles(map[string]string{"extensions/fee.yaml": "id: ext.saas-stub\nhandler: saas-stub\nbilling: byok\n" +
		"fee: { per_creation: \"0.20 USD\", per_hour: \"0.10 USD\", billing: byok }\n"}))
	req := engine.Request{Profile: "profile.stub", Name: "one", TTL: "2h", Billing: "byok"}
	if _, err := b.Create(ctx, req, nil, nil); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Fatalf("without credit for the fee: %v", err)
	}
	b.grant(dollar)
	limit := func(amount int64) { b.budget("all", amount, true) }
	limit(400_000_010) // the fee alone, of what counts
	if _, err := b.Create(ctx, req, nil, nil); !extensions.IsKind(err, extensions.KindExhausted) ||
		!strings.Contains(err.Error(), "budget all of acme/web") {
		t.Fatalf("a budget has to count what the vendor is paid: %v", err)
	}
	limit(1000e9)
	s, err := b.Create(ctx, req, nil, nil)
	if err != nil {
		t.Fatalf("%v (%s)", err, extensions.RemedyOf(err))
	}
	vendor, budget := b.balance(ledger.AccountBYOK), b.theBudget("all")
	if held := b.balance(ledger.AccountWallet).DebitsPending; held < 400_000_000 || held > 400_000_010 {
		t.Errorf("%d nano-units are set aside for a creation and two hours", held)
	} else if vendor.DebitsPending <= 0 || budget.Reserved != held+vendor.DebitsPending {
		t.Errorf("the wallet holds %d, the memo %+v, the budget %+v", held, vendor, budget)
	}
	b.end(s)
	after, vendor, budget := b.balance(ledger.AccountWallet), b.balance(ledger.AccountBYOK), b.theBudget("all")
	if after.DebitsPending != 0 || after.DebitsPosted < 200_000_000 ||
		after.DebitsPosted > 200_000_000+int64(time.Minute/time.Millisecond)*100_000 {
		t.Errorf("settled: %+v", after)
	}
	if vendor.DebitsPosted <= 0 || vendor.DebitsPending != 0 || budget.Reserved != 0 ||
		budget.Spent != after.DebitsPosted+vendor.DebitsPosted {
		t.Errorf("settled: wallet %+v, memo %+v, budget %+v", after, vendor, budget)
	}
	if _, findings, err := verifyLedger(ctx, b.Engine); err != nil || len(findings) > 0 {
		t.Errorf("%v, %v", findings, err)
	}
}
