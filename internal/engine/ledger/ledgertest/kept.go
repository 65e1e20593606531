package ledgertest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// perMonth is what keeping one GiB for a month costs, in nano-units.
const perMonth = 730 * 3_600_000

// kept: a snapshot is metered from when it is kept until it is gone, and charged once, to whoever paid for its
// sandbox; it is no life.
func kept(t *testing.T, address NewAddress) {
	for name, c := range map[string]struct {
		reserve        ledger.Reserve
		granted, memos int64
	}{
		"a wallet":           {ledger.Reserve{Currency: "USD", Amount: 3_600, Wallet: true}, 1_000_000_000, 0},
		"a wallet too small": {ledger.Reserve{Currency: "USD", Amount: 3_600, Wallet: true}, 5_000_000, 0},
		"the user's key":     {ledger.Reserve{Currency: "USD", Amount: 3_600, Memo: ledger.AccountBYOK}, 0, 7_200_000},
		"nobody we set up":   {ledger.Reserve{Currency: "USD", Amount: 3_600}, 0, 7_200_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := fresh(t, address)
			if c.granted > 0 {
				granted(t, l, c.granted)
			}
			s := must(begun(t, l, c.reserve))(t)
			s = must(l.Apply(context.Background(), provisioning(s)))(t)
			s = must(l.Apply(context.Background(), ready(s)))(t)
			snap := keptOf(t, l, s)
			if snap.Payer != s.Payer {
				t.Errorf("%q pays for it, %q for its sandbox", snap.Payer, s.Payer)
			}
			gone(t, l, s)
			before := balance(t, l, ledger.AccountWallet)
			own := must(l.Charges(context.Background(), s.ID))(t)
			for range 2 { // the second time nothing happens
				deleted(t, l, snap, Start.Add(2*time.Hour))
			}
			paid := balance(t, l, ledger.AccountWallet).DebitsPosted - before.DebitsPosted
			if want := min(7_200_000-c.memos, before.Available()); paid != want {
				t.Errorf("the wallet paid %d, want %d", paid, want)
			}
			if owed := balance(t, l, ledger.AccountReceivable).Owed(); owed != 7_200_000-c.memos-paid {
				t.Errorf("%d are owed, and %d paid", owed, paid)
			}
			if again := must(l.Charges(context.Background(), s.ID))(t); len(again) != len(own) {
				t.Errorf("the sandbox is charged %+v, before it was %+v", again, own)
			}
			countsNoLife(t, l, snap, c.memos)
			verified(t, l)
		})
	}
	t.Run("a count that is missing, or left", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := made(t, l, "n")
		b := ledger.BeginSnapshot{Key: "snap", Holder: holderOf(t, l), ID: newSnapshotID(t), Account: Account, SandboxID: s.ID}
		must(l.BeginSnapshot(context.Background(), b))(t)
		bare := ledger.SnapshotChange{ID: b.ID, Key: "ready", To: ledger.SnapshotReady, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}}
		if _, err := l.ApplySnapshot(context.Background(), bare); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("kept without a count: %v", err)
		}
		bare.Meter.Open = &ledger.MeterOpen{At: Start, Source: "ours"} // of one's own place: nothing to charge
		must(l.ApplySnapshot(context.Background(), bare))(t)
		must(l.ApplySnapshot(context.Background(), ending(t, l, b.ID)))(t)
		bare.Key, bare.To, bare.Meter = "gone", ledger.SnapshotDeleted, ledger.MeterOps{}
		if _, err := l.ApplySnapshot(context.Background(), bare); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("deleted and still counted: %v", err)
		}
		bare.Meter.Close = &ledger.MeterClose{At: Start.Add(time.Hour), Source: "ours"}
		must(l.ApplySnapshot(context.Background(), bare))(t)
		verified(t, l)
	})
}

// keptOf keeps a snapshot of one GiB, at a price per GiB and hour of an even number.
func keptOf(t testing.TB, l *ledger.Ledger, s ledger.Sandbox) ledger.Snapshot {
	t.Helper()
	ctx := context.Background()
	b := ledger.BeginSnapshot{Key: "snap", Holder: holderOf(t, l), ID: newSnapshotID(t), Account: s.Account, Name: "seeded", SandboxID: s.ID,
		Extension: "ext.kept", Host: "one", Retention: time.Hour, Arch: "arm64", CreatedAt: Start}
	must(l.BeginSnapshot(ctx, b))(t)
	price := meter.UnitPrice(perMonth * 1000)
	prices := meter.PriceSnapshot{Version: 1, Basis: meter.BasisBook, Extension: "ext.kept", Currency: "USD", Kept: true,
		Confidence: meter.ConfidenceExact, Sizes: meter.Sizes{DiskMiB: 1024}, Prices: []meter.SnapshotPrice{{Component: meter.ComponentSnapshot,
			Unit: "snapshot-gib-month", Price: &price, Confidence: meter.ConfidenceExact}}}
	return must(l.ApplySnapshot(ctx, ledger.SnapshotChange{ID: b.ID, Key: "snap/ready", To: ledger.SnapshotReady,
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Meter: ledger.MeterOps{Open: &ledger.MeterOpen{At: Start, Source: "ours", Currency: "USD", Rates: json.RawMessage(prices.Encode()),
			Sizes: prices.Sizes.Map()}}}))(t)
}

func ending(t testing.TB, l *ledger.Ledger, id string) ledger.SnapshotChange {
	t.Helper()
	return ledger.SnapshotChange{ID: id, Key: id + "/ending", To: ledger.SnapshotDeleting,
		Intent: &ledger.OpenIntent{Kind: ledger.IntentDeleteSnapshot, Holder: holderOf(t, l)}}
}

func deleted(t testing.TB, l *ledger.Ledger, s ledger.Snapshot, at time.Time) {
	t.Helper()
	must(l.ApplySnapshot(context.Background(), ending(t, l, s.ID)))(t)
	must(l.ApplySnapshot(context.Background(), ledger.SnapshotChange{ID: s.ID, Key: s.ID + "/gone", To: ledger.SnapshotDeleted,
		Patch: ledger.SnapshotPatch{EndedAt: &at}, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Meter: ledger.MeterOps{Close: &ledger.MeterClose{At: at, Source: "ours"}}}))(t)
}

// countsNoLife looks at the reports: a row of its own by component, and no life or time.
func countsNoLife(t *testing.T, l *ledger.Ledger, snap ledger.Snapshot, memo int64) {
	t.Helper()
	ctx := context.Background()
	for _, r := range must(l.Usage(ctx, ledger.UsageFilter{Extension: "ext.kept"}))(t) {
		if r.Meters != 0 || r.Running != 0 || r.Wallet+r.OwnKey+r.OwnPlace != 7_200_000 {
			t.Errorf("in all %+v", r)
		}
	}
	rows := must(l.Usage(ctx, ledger.UsageFilter{Component: "snapshot"}, bank.ByComponent, bank.BySandbox))(t)
	if len(rows) != 1 || rows[0].Quantity.Int64() != 1024*7_200_000 || rows[0].SandboxID != snap.SandboxID ||
		rows[0].OwnKey+rows[0].OwnPlace != memo || rows[0].Meters != 0 {
		t.Errorf("by component %+v", rows)
	}
	n := 0
	err := l.EachCharge(ctx, ledger.UsageFilter{SnapshotID: snap.ID}, func(c ledger.ChargeRow) error {
		if n++; c.SnapshotID != snap.ID || c.Amount != 7_200_000 || c.Mode != "" {
			t.Errorf("charged %+v", c)
		}
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("%d charges, %v", n, err)
	}
	if ms := must(l.Meters(ctx, snap.SandboxID))(t); len(ms) != 1 || ms[0].SnapshotID != "" {
		t.Errorf("the sandbox has the meters %+v", ms)
	}
}
