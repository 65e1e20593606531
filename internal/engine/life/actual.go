package life

import (
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Sources of an Actual.
const (
	ActualPlace   = "place"   // the place's own meter
	ActualTime    = "time"    // estimated by the time since the start
	ActualSettled = "settled" // the ledger, at the end
)

// Actual is the usage of a sandbox: so far, or in total once it has ended.
type Actual struct {
	Source string
	Why    string    // why something is estimated; "" = nothing is
	At     time.Time // until when it counts
	// Running and Paused are what the ledger charges for: of the current life, or of all once it has ended.
	Running, Paused time.Duration
	Usage           *extensions.Usage // as the place measured it; nil if nothing
	Charges         []Charge          // while it lives, as if it ended now
}

// Actual reads the usage of a sandbox and writes nothing. It asks the place of a live sandbox, for a few
// seconds at most. If the place does not answer, the result is the estimate by time, without an error. nil
// means that the ledger has no meter of the sandbox.
func (m *Manager) Actual(ctx context.Context, id extensions.ID) (*Actual, error) {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil, err
	}
	meters, err := l.Meters(ctx, id)
	n := len(meters)
	if err != nil || n == 0 {
		return nil, err
	}
	last := meters[n-1]
	if !last.Open() {
		out := &Actual{Source: ActualSettled, At: last.ClosedAt}
		for _, x := range meters {
			running, paused := x.Lasted()
			out.Running, out.Paused = out.Running+running, out.Paused+paused
		}
		out.Charges, err = m.Charges(ctx, id)
		return out, err
	}
	row, err := l.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	got := m.measure(ctx, row, meters)
	now := m.stopsAt(row)
	last = last.Closed(ledger.MeterClose{At: now}, now)
	out := &Actual{Source: ActualTime, Why: got.Why, At: last.ClosedAt, Usage: got.Usage}
	if got.Usage != nil {
		out.Source = ActualPlace
	}
	out.Running, out.Paused = last.Lasted()
	charges, err := bank.Price(last, got.Usage)
	if err != nil {
		return out, err
	}
	held, err := l.Held(ctx, id)
	out.Charges = chargesOf(last.Paid(charges, row.Payer, held))
	return out, err
}

// measureAtOnce is how many meters are read at a time, and measureTime how long all of them may take.
const (
	measureAtOnce = 8
	measureTime   = 15 * time.Second
)

// Measure reads the meters that the places of live sandboxes keep, side by side. It writes nothing, and reports a
// place that does not answer instead of failing.
func (m *Manager) Measure(ctx context.Context, ids []extensions.ID) (map[extensions.ID]bank.Measured, error) {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil, err
	}
	within, stop := context.WithTimeout(ctx, measureTime)
	defer stop()
	out := map[extensions.ID]bank.Measured{}
	var mu sync.Mutex
	var asked errgroup.Group
	asked.SetLimit(measureAtOnce)
	for _, id := range ids {
		row, err := l.Get(ctx, id)
		var meters []ledger.Meter
		if err == nil {
			meters, err = l.Meters(ctx, id)
		}
		switch {
		case absent(err):
			continue
		case err != nil:
			stop()
			_ = asked.Wait()
			return nil, err
		case len(meters) == 0 || !meters[len(meters)-1].Open():
			continue // it ended since
		}
		asked.Go(func() error {
			got := m.measure(within, row, meters)
			mu.Lock()
			defer mu.Unlock()
			out[id] = got
			return nil
		})
	}
	return out, asked.Wait()
}

// measure asks the place of a row, whose last meter is open, for what can be true of its measure.
func (m *Manager) measure(ctx context.Context, row ledger.Sandbox, meters []ledger.Meter) bank.Measured {
	b, err := m.catalog.Named(row.Extension)
	if err == nil && !b.Descriptor.Has(extensions.PowerUsage) {
		return bank.Measured{Why: row.Extension + " measures nothing"}
	}
	if err == nil && row.Handle.IsZero() {
		return bank.Measured{Why: "its place does not know it yet"}
	}
	var u extensions.Usage
	if err == nil {
		u, err = m.places.Measure(ctx, placeOf(row), row.Handle)
	}
	if err != nil {
		return bank.Measured{Why: extensions.Clean(err.Error(), 300)}
	}
	if bank.GoesOn(meters) {
		return bank.Measured{Why: "its measurement was not believed: " + bank.CoversSettled}
	}
	now := m.stopsAt(row)
	able, refused := meters[len(meters)-1].Closed(ledger.MeterClose{At: now}, now).Believable(&u, nil)
	got := bank.Measured{Usage: able}
	if len(refused) > 0 {
		got.Why = "its measurement was not believed: " + extensions.Clean(strings.Join(refused, "; "), 300)
	}
	return got
}

// stopsAt returns now, or the deadline of a row if that has passed: it is charged up to there.
func (m *Manager) stopsAt(row ledger.Sandbox) time.Time {
	now := m.book.Now()
	if d := row.ExpiresAt; !d.IsZero() && d.Before(now) {
		return d
	}
	return now
}
