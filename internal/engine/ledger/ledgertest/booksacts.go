package ledgertest

import (
	"context"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var currencies = []string{"USD", "EUR"}

func (k *bookkeeper) workspace(rt *rapid.T) string {
	return k.org + "/" + rapid.SampledFrom([]string{"web", "api"}).Draw(rt, "workspace")
}

func (k *bookkeeper) currency(rt *rapid.T) string {
	return rapid.SampledFrom(currencies).Draw(rt, "currency")
}

func (k *bookkeeper) grant(rt *rapid.T) {
	g := ledger.Grant{Key: k.key("grant"), Org: k.org, Currency: k.currency(rt), Amount: rapid.Int64Range(1, 100).Draw(rt, "amount")}
	k.must(rt, k.do(rt, func(ctx context.Context, i int) error {
		_, err := k.ledgers[i].Grant(ctx, g)
		return err
	}))
	k.plain.grant(k.org, g.Currency, g.Amount)
}

// limit sets a budget. It has no key, so it is not repeated.
func (k *bookkeeper) limit(rt *rapid.T) {
	k.clock.Add(1000)
	b := ledger.Budget{Account: rapid.SampledFrom([]string{k.org, k.org + "/web", k.org + "/api"}).Draw(rt, "account"),
		Name: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "name"), Currency: k.currency(rt), Limit: rapid.Int64Range(0, 250).Draw(rt, "limit"),
		Hard: rapid.Bool().Draw(rt, "hard"), Period: rapid.SampledFrom([]string{"", "day", "week", "month"}).Draw(rt, "period")}
	for _, l := range k.ledgers {
		_, err := l.PutBudget(context.Background(), b)
		k.must(rt, err)
	}
	k.plain.put(b, k.now())
}

// later lets time pass: a moment, or enough for periods to end.
func (k *bookkeeper) later(rt *rapid.T) {
	k.clock.Add(rapid.SampledFrom([]time.Duration{time.Minute, 13 * time.Hour, 24 * time.Hour, 8 * 24 * time.Hour,
		32 * 24 * time.Hour}).Draw(rt, "later").Microseconds())
}

// payment draws the payer, the currency and the amount to reserve.
func payment(rt *rapid.T) (payer string, r *ledger.Reserve) {
	payer = rapid.SampledFrom([]string{ledger.AccountWallet, ledger.AccountWallet, ledger.AccountBYOK, ledger.AccountInfra}).Draw(rt, "payer")
	r = &ledger.Reserve{Currency: rapid.SampledFrom(currencies).Draw(rt, "currency"), Amount: rapid.Int64Range(0, 80).Draw(rt, "reserve"),
		Wallet: payer == ledger.AccountWallet}
	if !r.Wallet {
		r.Memo = payer
	} else {
		r.Own = ownPart(rt, r.Amount)
	}
	return payer, r
}

// ownPart draws the part of an amount that the user's own key pays: often nothing.
func ownPart(rt *rapid.T, amount int64) ledger.Share {
	if rapid.Bool().Draw(rt, "all is the wallet's") {
		return ledger.Share{}
	}
	return ledger.Share{Amount: rapid.Int64Range(0, amount).Draw(rt, "own")}
}

// charges draws the usage: in the life's currency, in another, and paid to somebody else.
func charges(rt *rapid.T, currency string) []ledger.Charge {
	out := []ledger.Charge{{Segment: 1, Component: "wall", Amount: rapid.Int64Range(0, 150).Draw(rt, "used"), Currency: currency,
		Confidence: "exact"}}
	if n := rapid.Int64Range(0, 40).Draw(rt, "memo"); n%2 == 1 {
		out = append(out, ledger.Charge{Segment: 1, Component: "own", Amount: n, Currency: currency, Memo: "byok_memo:x", Confidence: "exact"})
	}
	if n := rapid.Int64Range(0, 40).Draw(rt, "other"); n%4 == 1 {
		other := currencies[(slices.Index(currencies, currency)+1)%2]
		out = append(out, ledger.Charge{Segment: 1, Component: "fee", Amount: n, Currency: other, Confidence: "exact"})
	}
	return out
}

func (k *bookkeeper) begin(rt *rapid.T) {
	payer, r := payment(rt)
	id, account, key := k.id(), k.workspace(rt), k.key("begin")
	f := &stay{rows: make([]ledger.Sandbox, len(k.ledgers)), payer: payer, currency: r.Currency}
	err := k.do(rt, func(ctx context.Context, i int) (err error) {
		b := want(id, k.holders[i], string(id))
		b.Key, b.Account, b.Reserve = key, account, r
		row, err := k.ledgers[i].Begin(ctx, b)
		if err == nil {
			f.rows[i] = row
		}
		return err
	})
	if k.reserved(rt, account, payer, r, err) {
		k.plain.reserve(id, account, payer, r.Currency, r.Amount, r.Own.Amount, k.now())
		k.alive = append(k.alive, f)
	}
}

// pick draws a life in one of the states.
func (k *bookkeeper) pick(rt *rapid.T, states ...lifecycle.State) *stay {
	var fit []*stay
	for _, f := range k.alive {
		if slices.Contains(states, f.row().State) {
			fit = append(fit, f)
		}
	}
	if len(fit) == 0 {
		rt.Skip("nothing is ", states)
	}
	return fit[rapid.IntRange(0, len(fit)-1).Draw(rt, "which")]
}

func (k *bookkeeper) over(f *stay) {
	k.alive = slices.DeleteFunc(k.alive, func(x *stay) bool { return x == f })
}

func (k *bookkeeper) run(rt *rapid.T) {
	k.runs(rt, k.pick(rt, lifecycle.Requested, lifecycle.Provisioning))
}

func (k *bookkeeper) runs(rt *rapid.T, f *stay) {
	if f.row().State == lifecycle.Requested {
		k.must(rt, k.change(rt, f, "provisioning", func(ledger.Sandbox, int) ledger.Change { return ledger.Change{To: lifecycle.Provisioning} }))
	}
	at := k.now()
	k.must(rt, k.change(rt, f, "ready", func(ledger.Sandbox, int) ledger.Change {
		return ledger.Change{To: lifecycle.Ready, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
			Meter: ledger.MeterOps{Began: meterOpen(at)}}
	}))
}

// elsewhere settles what an attempt used at one place and sets aside for the next, in one step; where there
// is not enough, the attempt is not over.
func (k *bookkeeper) elsewhere(rt *rapid.T) {
	f := k.pick(rt, lifecycle.Provisioning)
	used, at := charges(rt, f.currency), k.now()
	payer, r := payment(rt)
	k.bills.Put(f.row().ID, used...)
	k.must(rt, k.change(rt, f, "began", func(ledger.Sandbox, int) ledger.Change {
		return ledger.Change{Meter: ledger.MeterOps{Began: meterOpen(at)}}
	}))
	err := k.change(rt, f, "elsewhere", func(ledger.Sandbox, int) ledger.Change {
		return ledger.Change{Reserve: r, Meter: ledger.MeterOps{Began: &ledger.MeterOpen{At: at.Add(-time.Second), Source: bank.SourceBackend},
			Close: &ledger.MeterClose{At: at, Source: "ours"}}}
	})
	before := k.plain.copied()
	k.plain.settle(f.row().ID, f.row().Account, used, k.now())
	if f.began = !k.reserved(rt, f.row().Account, payer, r, err); f.began {
		k.plain = before
		return
	}
	f.payer, f.currency = payer, r.Currency
	k.plain.reserve(f.row().ID, f.row().Account, payer, r.Currency, r.Amount, r.Own.Amount, k.now())
}

func (k *bookkeeper) extend(rt *rapid.T) {
	f := k.pick(rt, lifecycle.Ready)
	n := rapid.Int64Range(1, 50).Draw(rt, "more")
	r := &ledger.Reserve{Currency: f.currency, Amount: n, Wallet: f.payer == ledger.AccountWallet}
	if r.Wallet {
		r.Own = ownPart(rt, n)
	} else {
		r.Memo = f.payer
	}
	err := k.change(rt, f, "extend", func(ledger.Sandbox, int) ledger.Change { return ledger.Change{Reserve: r} })
	if k.reserved(rt, f.row().Account, f.payer, r, err) {
		k.plain.reserve(f.row().ID, f.row().Account, f.payer, f.currency, n, r.Own.Amount, k.now())
	}
}

// shorten returns a part of the hold, to the nano-unit, which no limit refuses.
func (k *bookkeeper) shorten(rt *rapid.T) {
	f := k.pick(rt, lifecycle.Ready)
	needed := map[source]int64{}
	for _, x := range k.plain.held[f.row().ID] {
		needed[x.source()] += x.amount
	}
	for _, payer := range []string{ledger.AccountWallet, ledger.AccountBYOK, ledger.AccountInfra} {
		if of := (source{payer, f.currency}); needed[of] > 0 {
			needed[of] = rapid.Int64Range(0, needed[of]).Draw(rt, payer)
		}
	}
	r := &ledger.Reserve{Currency: f.currency, Wallet: f.payer == ledger.AccountWallet, Total: true}
	if r.Wallet {
		r.Own.Amount = needed[source{ledger.AccountBYOK, f.currency}]
		r.Amount = needed[source{ledger.AccountWallet, f.currency}] + r.Own.Amount
	} else {
		r.Memo, r.Amount = f.payer, needed[source{f.payer, f.currency}]
	}
	k.must(rt, k.change(rt, f, "shorten", func(ledger.Sandbox, int) ledger.Change { return ledger.Change{Reserve: r} }))
	k.plain.shorten(f.row().ID, needed)
}

func (k *bookkeeper) pause(rt *rapid.T) {
	f := k.pick(rt, lifecycle.Ready)
	at := k.now().Add(time.Duration(rapid.Int64Range(-3600, 60).Draw(rt, "at")) * time.Second)
	mode := rapid.SampledFrom([]ledger.Mode{ledger.Paused, ledger.Running}).Draw(rt, "mode")
	k.must(rt, k.change(rt, f, "pause", func(ledger.Sandbox, int) ledger.Change {
		return ledger.Change{Meter: ledger.MeterOps{Switch: &bank.MeterSwitch{At: at, Mode: mode, Sizes: sizes}}}
	}))
}

func (k *bookkeeper) destroying(rt *rapid.T, f *stay) {
	k.must(rt, k.change(rt, f, "destroying", func(_ ledger.Sandbox, i int) ledger.Change {
		return ledger.Change{To: lifecycle.Destroying,
			Intent: &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: k.holders[i], Supersede: true}}
	}))
}

func (k *bookkeeper) end(rt *rapid.T) {
	f := k.pick(rt, lifecycle.Ready)
	k.ends(rt, f, charges(rt, f.currency))
}

func (k *bookkeeper) ends(rt *rapid.T, f *stay, used []ledger.Charge) {
	at := k.now()
	k.destroying(rt, f)
	k.bills.Put(f.row().ID, used...)
	k.must(rt, k.change(rt, f, "destroyed", func(ledger.Sandbox, int) ledger.Change {
		return ledger.Change{To: lifecycle.Destroyed, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
			Meter: ledger.MeterOps{Close: &ledger.MeterClose{At: at, Source: "ours"}}}
	}))
	k.plain.settle(f.row().ID, f.row().Account, used, k.now())
	k.over(f)
}

// refuse ends a sandbox that never ran: its whole hold is free again.
func (k *bookkeeper) refuse(rt *rapid.T) {
	f := k.pick(rt, lifecycle.Requested)
	k.must(rt, k.change(rt, f, "refused", func(ledger.Sandbox, int) ledger.Change {
		return ledger.Change{To: lifecycle.Destroyed, Finish: &ledger.FinishIntent{Outcome: ledger.Failed}}
	}))
	k.plain.settle(f.row().ID, f.row().Account, nil, k.now())
	k.over(f)
}

// giveUp ends a sandbox whose outcome can never be known.
func (k *bookkeeper) giveUp(rt *rapid.T) {
	f := k.pick(rt, lifecycle.Requested, lifecycle.Provisioning)
	if f.began {
		rt.Skip("it is known to have been made")
	}
	k.destroying(rt, f)
	k.must(rt, k.change(rt, f, "unresolved", func(ledger.Sandbox, int) ledger.Change {
		return ledger.Change{To: lifecycle.Destroyed, Finish: &ledger.FinishIntent{Outcome: ledger.Failed}, Unresolved: true}
	}))
	k.plain.expose(f.row().ID, f.row().Account, k.now())
	k.over(f)
}

// recreate settles one life and reserves for the next, in one step. If the funds do not suffice, the first life
// continues unchanged.
func (k *bookkeeper) recreate(rt *rapid.T) {
	f := k.pick(rt, lifecycle.Ready)
	used, at := charges(rt, f.currency), k.now()
	payer, r := payment(rt)
	k.bills.Put(f.row().ID, used...)
	err := k.change(rt, f, "recreate", func(_ ledger.Sandbox, i int) ledger.Change {
		return ledger.Change{To: lifecycle.Provisioning, NextGeneration: true, Reserve: r,
			Intent: &ledger.OpenIntent{Kind: ledger.IntentRecreate, Holder: k.holders[i]},
			Meter:  ledger.MeterOps{Close: &ledger.MeterClose{At: at, Source: "ours"}}}
	})
	before := k.plain.copied()
	k.plain.settle(f.row().ID, f.row().Account, used, k.now())
	if !k.reserved(rt, f.row().Account, payer, r, err) {
		k.plain = before
		return
	}
	f.payer, f.currency = payer, r.Currency
	k.plain.reserve(f.row().ID, f.row().Account, payer, r.Currency, r.Amount, r.Own.Amount, k.now())
}

// unreserved begins a life under a taken name, which is refused, and then under its own: it has no reservation, and its
// usage counts all the same.
func (k *bookkeeper) unreserved(rt *rapid.T) {
	other := k.pick(rt, lifecycle.Requested, lifecycle.Ready)
	id, f := k.id(), &stay{rows: make([]ledger.Sandbox, len(k.ledgers))}
	begin := func(key, name string) error {
		return k.do(rt, func(ctx context.Context, i int) (err error) {
			b := want(id, k.holders[i], name)
			b.Key, b.Account = key, other.row().Account
			f.rows[i], err = k.ledgers[i].Begin(ctx, b)
			return err
		})
	}
	if err := begin(k.key("taken"), other.row().Name); !extensions.IsKind(err, extensions.KindConflict) {
		rt.Fatalf("the name %q was given twice: %v", other.row().Name, err)
	}
	k.must(rt, begin(k.key("unreserved"), string(id)))
	k.runs(rt, f)
	k.ends(rt, f, charges(rt, other.currency))
}
