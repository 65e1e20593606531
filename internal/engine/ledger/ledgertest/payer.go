package ledgertest

import (
	"context"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
)

// nothingForeseen: the payer at the beginning also pays for a life whose maximum is nothing, if it has usage after all;
// a later payer does not.
func nothingForeseen(t *testing.T, address NewAddress) {
	free := ledger.Reserve{Currency: "USD", IfGranted: true, Anew: true, Total: true}
	explicit := ledger.Reserve{Currency: "USD", Wallet: true, Total: true}
	own := ledger.Reserve{Currency: "USD", Memo: ledger.AccountInfra, Total: true}
	later := ledger.Reserve{Currency: "USD", IfGranted: true, Total: true}
	for name, c := range map[string]struct {
		before, after int64 // granted
		r             ledger.Reserve
		wanted        string
	}{
		"credit":                         {10, 0, free, ledger.AccountWallet},
		"credit that is asked for":       {0, 10, explicit, ledger.AccountWallet},
		"credit that came later":         {0, 10, free, ledger.AccountBYOK},
		"no credit":                      {0, 0, free, ledger.AccountBYOK},
		"an own place, though credit is": {10, 0, own, ledger.AccountInfra},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			l := fresh(t, address)
			if c.before > 0 {
				granted(t, l, c.before)
			}
			s := must(begun(t, l, c.r))(t)
			if n, _ := heldBy(t, l, s.ID); n != 0 || s.Payer != c.wanted {
				t.Errorf("%d are held, and %q pays; want %q", n, s.Payer, c.wanted)
			}
			if c.after > 0 {
				granted(t, l, c.after)
			}
			s = must(l.Apply(ctx, provisioning(s)))(t)
			s = must(l.Apply(ctx, ready(s)))(t)
			end := s.ExpiresAt.Add(time.Hour)
			s = must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, "later"), Patch: ledger.Patch{ExpiresAt: &end}, Reserve: &later}))(t)
			if s.Payer != c.wanted {
				t.Errorf("after a later end %q pays", s.Payer)
			}
			s = gone(t, l, s)
			cs := must(l.Charges(ctx, s.ID))(t)
			if memo := map[string]string{ledger.AccountWallet: "", ledger.AccountBYOK: "byok_memo:ext.local",
				ledger.AccountInfra: "infra_memo:ext.local"}[c.wanted]; len(cs) != 1 || cs[0].Memo != memo {
				t.Fatalf("charged %+v, want a memo %q", cs, memo)
			}
			w, owed := balance(t, l, ledger.AccountWallet), balance(t, l, ledger.AccountReceivable).Owed()
			if c.wanted != ledger.AccountWallet {
				if x := balance(t, l, c.wanted); x.DebitsPosted != cs[0].Amount || w.DebitsPosted != 0 || owed != 0 {
					t.Errorf("%+v, wallet %+v, owed %d", x, w, owed)
				}
			} else if w.DebitsPosted != 10 || owed != cs[0].Amount-10 {
				t.Errorf("wallet %+v, owed %d of %d", w, owed, cs[0].Amount)
			}
			if s.Payer != "" {
				t.Errorf("it is settled, and %q pays", s.Payer)
			}
			verified(t, l)
		})
	}
	t.Run("a new life is decided anew", func(t *testing.T) { t.Parallel(); decidedAnew(t, address) })
}

// decidedAnew: a recreate, and an attempt at another place, decide the payer again.
func decidedAnew(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	free := ledger.Reserve{Currency: "USD", IfGranted: true, Anew: true, Total: true}
	s := must(begun(t, l, free))(t)
	s = must(l.Apply(ctx, provisioning(s)))(t)
	s = must(l.Apply(ctx, ready(s)))(t)
	granted(t, l, 10)
	s = must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, "again"), To: lifecycle.Provisioning, NextGeneration: true, Reserve: &free,
		Intent: &ledger.OpenIntent{Kind: ledger.IntentRecreate, Holder: holderOf(t, l)},
		Meter:  ledger.MeterOps{Close: meterClose(Start.Add(time.Minute))}}))(t)
	if cs := must(l.Charges(ctx, s.ID))(t); s.Payer != ledger.AccountWallet || len(cs) != 1 || cs[0].Memo != "byok_memo:ext.local" {
		t.Errorf("%q pays for the new life, and charged for the old one is %+v", s.Payer, cs)
	}
	for i, c := range []struct {
		r      ledger.Reserve
		wanted string
	}{
		{ledger.Reserve{Currency: "USD", Memo: ledger.AccountInfra, Total: true, Anew: true}, ledger.AccountInfra},
		{ledger.Reserve{Unknown: true, Total: true}, ledger.AccountInfra}, // an unknown price decides nothing
		{ledger.Reserve{Unknown: true, Total: true, Anew: true}, ledger.AccountBYOK},
		{ledger.Reserve{Currency: "USD", Amount: 4, IfGranted: true, Total: true, Anew: true}, ledger.AccountWallet},
	} {
		s = must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, string(rune('a'+i))), Reserve: &c.r}))(t)
		if s.Payer != c.wanted {
			t.Errorf("%+v: %q pays, want %q", c.r, s.Payer, c.wanted)
		}
	}
	verified(t, l)
}
