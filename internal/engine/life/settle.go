package life

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// began returns the start of the meter of a sandbox that is not ready yet, with the prices and sizes of q.
func (m *Manager) began(row ledger.Sandbox, q meter.Quote, told time.Time) *ledger.MeterOpen {
	open := m.startOf(row, told)
	open.Currency, open.Rates = string(q.Snapshot.Currency), []byte(q.Snapshot.Encode())
	open.Mode, open.Sizes = ledger.Running, q.Sizes.Map()
	return open
}

// startOf returns since when a sandbox that is not ready yet costs: as its place tells it, but never before this
// life of it was asked for, and never later than now; ours if the place tells nothing.
func (m *Manager) startOf(row ledger.Sandbox, told time.Time) *ledger.MeterOpen {
	now, asked := m.book.Now(), row.CreatedAt
	if again := row.ExpiresAt.Add(-row.TTL); again.After(asked) { // a re-created one lives anew
		asked = again
	}
	switch {
	case told.IsZero():
		return &ledger.MeterOpen{At: now, Source: "ours"}
	case told.After(now):
		told = now
	case told.Before(asked):
		told = asked
	}
	return &ledger.MeterOpen{At: told, Source: bank.SourceBackend}
}

// sizesGiven returns what is counted of the size that a place gave; nil if it told none.
func (m *Manager) sizesGiven(b catalog.Binding, row ledger.Sandbox, given extensions.Resources) map[string]int64 {
	if given == (extensions.Resources{}) {
		return nil
	}
	sizes := given.Over(specOf(row).Resources).RoundUp(b.Capabilities)
	q, err := meter.NewQuote(plan.QuoteInput(m.catalog, b, nil, "", sizes, 0, false))
	if err != nil {
		return nil
	}
	return q.Sizes.Map()
}

// beganAtEnd returns what the end of a sandbox that was never ready says of its start, and of its sizes if they are
// known; nil if nothing. Without a meter it begins one, so that what a vendor bills is settled: from the last step
// before it was made if the place reports no start.
func (m *Manager) beganAtEnd(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, r extensions.CleanupReport,
	sizes map[string]int64) (*ledger.MeterOpen, error) {
	if !row.ReadyAt.IsZero() || r.AlreadyGone {
		return nil, nil
	}
	started := r.StartedAt
	if started.IsZero() && r.Usage != nil {
		started = r.Usage.StartedAt
	}
	if started.IsZero() && m.selfHosted(row.Extension) {
		return nil, nil
	}
	meters, err := l.Meters(context.WithoutCancel(ctx), row.ID)
	if err != nil {
		return nil, err
	}
	if n := len(meters); n > 0 && meters[n-1].Open() {
		if started.IsZero() && len(sizes) == 0 {
			return nil, nil
		}
		open := m.startOf(row, started)
		open.Currency, open.Rates, open.Sizes = meters[n-1].Currency, meters[n-1].Rates, sizes
		return open, nil
	}
	q, err := m.quoteOf(ctx, l, row)
	if err != nil {
		return nil, err
	}
	open := m.began(row, q, started)
	if started.IsZero() {
		open.At = row.UpdatedAt
	}
	if len(sizes) > 0 {
		open.Sizes = sizes
	}
	return open, nil
}

// quoteOf returns the prices and sizes of the recorded quote of a row.
func (m *Manager) quoteOf(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) (q meter.Quote, err error) {
	recorded, err := l.Quote(context.WithoutCancel(ctx), row.QuoteDigest)
	if err == nil {
		err = json.Unmarshal(recorded.Body, &q)
	}
	if err != nil {
		return q, extensions.Errorf(extensions.KindInternal, "the quote of %s cannot be read: %w", row.ID, err)
	}
	q.Snapshot = meter.UnknownPrices(row.Extension, q.Memo)
	for _, book := range recorded.Prices {
		q.Snapshot, err = meter.DecodePriceSnapshot(string(book.Body))
	}
	return q, err
}

// goesOn reopens the meter of a sandbox that was to be re-created but was not ended, from where that meter
// was closed. It does nothing if a meter runs or the next place was already asked.
func goesOn(ctx context.Context, o *book.Operation) error {
	if o.Row.Generation == 1 || o.Row.ReadyAt.IsZero() || o.Row.Handle.IsZero() {
		return nil
	}
	meters, err := o.Ledger.Meters(context.WithoutCancel(ctx), o.Row.ID)
	if err != nil || len(meters) == 0 {
		return err
	}
	m := meters[len(meters)-1]
	if m.Open() || m.Generation == o.Row.Generation || m.EndSource != "ours" || len(m.Segments) == 0 {
		return nil
	}
	rates, err := meter.DecodePriceSnapshot(string(m.Rates))
	if err != nil {
		return extensions.Errorf(extensions.KindInternal, "the prices of %s cannot be read: %w", o.Row.ID, err)
	}
	last := m.Segments[len(m.Segments)-1]
	return o.Apply(ctx, ledger.Change{Event: ledger.NewNote("sandbox.goes-on", nil),
		Meter: ledger.MeterOps{Open: &ledger.MeterOpen{At: m.ClosedAt, Source: m.EndSource, Currency: m.Currency,
			Rates: []byte(rates.Continued().Encode()), Mode: last.Mode, Sizes: last.Sizes}}})
}

// endingOf decides when a sandbox ended: the provider's word; else its deadline if that has passed; else
// now, when it was found gone.
func (m *Manager) endingOf(row ledger.Sandbox, told time.Time) book.Ending {
	now := m.book.Now()
	switch {
	case !told.IsZero() && !told.After(now):
		return book.Ending{At: told, Source: "backend"}
	case !row.ExpiresAt.IsZero() && !row.ExpiresAt.After(now):
		return book.Ending{At: row.ExpiresAt, Source: "deadline"}
	}
	return book.Ending{At: now, Source: "ours"}
}

// untold estimates the end of a sandbox that was found gone without anybody telling since when. A vendor's
// bill is bounded from above, at the earlier of its deadline and now: too little would be lost for good,
// while too much can be checked against the bill. No vendor bills for a place of one's own, whose hours
// others may have used since: there it ends when it was last seen alive, at its creation if it never was.
func (m *Manager) untold(row ledger.Sandbox, end book.Ending) book.Ending {
	end.Estimated = true
	if end.Source != "ours" || !m.selfHosted(row.Extension) {
		return end
	}
	end.At, end.Source = cmp.Or(book.LastSeen(row), row.CreatedAt), "seen-alive"
	return end
}

func estimatedNotice(row ledger.Sandbox, gone book.Ending) notice.Notice {
	bound := "the earlier of its deadline and now"
	if gone.Source == "seen-alive" {
		bound = "the time it was last seen"
	}
	return notice.Notice{Summary: "Its end is an estimate",
		Detail: fmt.Sprintf("Sandbox %s (%s) ended at an unknown time. Its charges count up to %s, %s.",
			row.ID, row.Name, gone.At.UTC().Format(time.RFC3339), bound)}
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

// placeOf returns the address of the backend that holds a row's sandbox.
func placeOf(row ledger.Sandbox) place.Address {
	return place.Address{Binding: row.Extension, Account: row.Account, Host: row.HostRef, Identity: row.Identity}
}

// keptAt returns the address of the backend that keeps a snapshot.
func keptAt(s ledger.Snapshot) place.Address {
	return place.Address{Binding: s.Extension, Account: s.Account, Host: s.HostRef, Identity: s.Identity}
}

// hostOf returns the host of a row; nil for an account, and for this machine without a name.
func hostOf(row ledger.Sandbox) *extensions.Host {
	h, err := extensions.ParseHostRef(row.HostRef)
	if err != nil {
		return nil
	}
	return &h
}

// settleLater notes an end for a later run and reports it. id is the ledger to settle it in; why is the
// reason, nil if the ledger here does not know the sandbox. It never fails the destroy: an end without a
// note is settled too, at an estimated time, when a run with that ledger finds the sandbox gone.
func (m *Manager) settleLater(ctx context.Context, row ledger.Sandbox, id string, gone book.Ending, why error, report *DestroyReport) {
	report.unsettled = why
	if why == nil && id == "" && report.AlreadyGone {
		return // nothing says that a ledger waits for it
	}
	u := book.Noted{Ledger: m.book.URL(), LedgerID: id, ID: row.ID, Generation: row.Generation,
		EndedAt: gone.At, Source: gone.Source, Estimated: gone.Estimated, Idle: gone.Idle, Usage: gone.Usage}
	told := fmt.Sprintf("Sandbox %s has ended, but the ledger could not be written: %s.", row.ID, why)
	next := "The next run that can write the ledger settles it."
	if why == nil {
		u.Ledger = ""
		made := "it was created with another one"
		if id != "" {
			made = "it was created with the ledger " + id
		}
		told = fmt.Sprintf("Sandbox %s has ended, but the ledger %s does not know it: %s, which still has its cost open.", row.ID, m.book.URL(),
			made)
		next = "A note in " + m.book.Folder() + " records its end. The next run with that ledger and this state folder that changes " +
			"something, such as `sandboxer sweep`, settles it."
	}
	if err := m.book.NoteEnd(ctx, u); err != nil {
		next = "The next run with its ledger that finds it gone settles it with an estimated end (the true end could not be noted: " +
			err.Error() + ")."
	}
	report.Notices = append(report.Notices, notice.Notice{Summary: "Ended, but not settled in the ledger", Detail: told + " " + next})
}

// settle closes the operation on a sandbox that was ended.
func (m *Manager) settle(ctx context.Context, op *book.Operation, how cause, gone book.Ending,
	report DestroyReport) (DestroyReport, error) {
	if stop := failpoint.Hit(ctx, pointTorn); stop != nil {
		return report, stop
	}
	if how.reason == "lost" && gone.Source == "ours" {
		gone = m.untold(op.Row, gone)
	}
	if gone.Source == "seen-alive" && how.begun.After(gone.At) {
		gone.At = how.begun
	}
	report.EndedAt = gone.At
	var err error
	if !report.AlreadyGone {
		err = goesOn(ctx, op)
	}
	if err == nil {
		err = op.Discard(ctx, ledger.Confirmed, gone.Reason(how.reason, op.Row), "", gone)
	}
	if err != nil {
		m.settleLater(ctx, op.Row, op.Ledger.ID(), gone, err, &report)
		return report, nil
	}
	if cs, err := op.Ledger.Charges(context.WithoutCancel(ctx), op.Row.ID); err == nil {
		report.Charges = chargesOf(cs)
	}
	if gone.Estimated && len(report.Charges) > 0 {
		report.Notices = append(report.Notices, estimatedNotice(op.Row, gone))
	}
	if n, ok := refusedMeasure(op.Row, gone); ok && len(report.Charges) > 0 {
		report.Notices = append(report.Notices, n)
	}
	return report, failpoint.Hit(ctx, pointDestroyed)
}
