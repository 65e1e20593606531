package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// openMeter starts the running price at the provider's start where it tells
// one, else at our ready.
func (e *Engine) openMeter(q meter.Quote, started time.Time) *ledger.MeterOpen {
	open := &ledger.MeterOpen{At: started, Source: "backend", Currency: string(q.Snapshot.Currency),
		Rates: []byte(q.Snapshot.Encode()), Mode: ledger.Running, Sizes: q.Sizes.Map()}
	if started.IsZero() {
		open.At, open.Source = e.now(), "ours"
	}
	return open
}

// goesOn lets the price run on of what was to be ended for another life, and
// was not, from where its meter was closed for that. It does nothing where a
// meter runs, or the next place was asked already.
func (o *operation) goesOn(ctx context.Context) error {
	if o.row.Generation == 1 || o.row.ReadyAt.IsZero() || o.row.Handle.IsZero() {
		return nil
	}
	meters, err := o.l.Meters(context.WithoutCancel(ctx), o.row.ID)
	if err != nil || len(meters) == 0 {
		return err
	}
	m := meters[len(meters)-1]
	if m.Open() || m.Generation == o.row.Generation || m.EndSource != "ours" || len(m.Segments) == 0 {
		return nil
	}
	rates, err := meter.DecodePriceSnapshot(string(m.Rates))
	if err != nil {
		return extensions.Errorf(extensions.KindInternal, "the prices of %s cannot be read: %w", o.row.ID, err)
	}
	last := m.Segments[len(m.Segments)-1]
	return o.apply(ctx, ledger.Change{Event: ledger.NewNote("sandbox.goes-on", nil),
		Meter: ledger.MeterOps{Open: &ledger.MeterOpen{At: m.ClosedAt, Source: m.EndSource, Currency: m.Currency, Rates: []byte(rates.Continued().Encode()), Mode: last.Mode, Sizes: last.Sizes}}})
}

// endOf decides when a sandbox ended: the provider's word; else its deadline
// where that has passed; else now, when its death was observed.
func (e *Engine) endOf(row ledger.Sandbox, told time.Time) ending {
	now := e.now()
	switch {
	case !told.IsZero() && !told.After(now):
		return ending{at: told, source: "backend"}
	case !row.ExpiresAt.IsZero() && !row.ExpiresAt.After(now):
		return ending{at: row.ExpiresAt, source: "deadline"}
	}
	return ending{at: now, source: "ours"}
}

// untold makes an estimate of the end of a sandbox that was gone when it was
// looked at, and nobody told since when. A vendor's bill is bounded from above:
// at the earlier of its deadline and now. Too little would be lost for good,
// while too much can be held against the bill. Nobody sends a bill for a place of
// one's own, whose hours others may have used since: it was there at least until
// it was last seen alive.
func (e *Engine) untold(row ledger.Sandbox, end ending) ending {
	end.estimated = true
	if end.source != "ours" || !e.ownPlace(row.Extension) {
		return end
	}
	if seen := lastSeen(row); !seen.IsZero() {
		end.at, end.source = seen, "seen-alive"
	}
	return end
}

// lastSeen is when the sandbox is known to have lived; zero = it never did.
func lastSeen(row ledger.Sandbox) time.Time {
	if row.SeenAliveAt.IsZero() {
		return row.ReadyAt
	}
	return row.SeenAliveAt
}

func estimatedNotice(row ledger.Sandbox, gone ending) Notice {
	bound := "the earlier of its deadline and now"
	if gone.source == "seen-alive" {
		bound = "when it was last seen"
	}
	return Notice{Summary: "Its end is an estimate", Detail: fmt.Sprintf("Nobody told when sandbox %s (%s) ended. Its charges count up to %s, %s.",
		row.ID, row.Name, gone.at.UTC().Format(time.RFC3339), bound)}
}

func chargesOf(cs []ledger.Charge) []Charge {
	out := make([]Charge, 0, len(cs))
	for _, c := range cs {
		counted, quantum := quantity(c)
		line := Charge{Component: c.Component, Quantity: counted, Unit: quantum, Currency: c.Currency, Memo: c.Memo != ""}
		if c.Known() {
			line.Amount = meter.Amount(c.Amount).String()
		}
		out = append(out, line)
	}
	return out
}

// absent reports an error that proves there is nothing.
func absent(err error) bool { return extensions.IsKind(err, extensions.KindNotFound) }
