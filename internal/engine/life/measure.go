package life

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// lastMeasure reads the meter of a place that is about to end a sandbox and may forget it then. It returns nil
// if the place cannot measure or does not answer, or if nothing is charged by measures.
func (m *Manager) lastMeasure(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox,
	h extensions.Handle) *extensions.Usage {
	if l == nil || h.IsZero() || !lacksMeasure(ctx, l, b, row, nil) {
		return nil
	}
	u, err := b.Usage(ctx, h)
	if err != nil {
		m.log.Info("the meter of a place could not be read", slog.String("sandbox", string(row.ID)), slog.Any("error", err))
		return nil
	}
	return &u
}

// lacksMeasure reports whether the meter of a row runs and charges for something that u does not tell, but its place can
// measure.
func lacksMeasure(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox, u *extensions.Usage) bool {
	if b.Can(extensions.PowerUsage) != nil {
		return false
	}
	meters, err := l.Meters(context.WithoutCancel(ctx), row.ID)
	n := len(meters)
	return err == nil && n > 0 && meters[n-1].Open() && meters[n-1].Lacks(u)
}

// filled adds to a measure what only an earlier one has; either may be nil.
func filled(u, before *extensions.Usage) *extensions.Usage {
	if u == nil || before == nil {
		return cmp.Or(u, before)
	}
	out := *u
	out.CPUMillis = cmp.Or(u.CPUMillis, before.CPUMillis)
	out.MemoryMiBMillis = cmp.Or(u.MemoryMiBMillis, before.MemoryMiBMillis)
	out.EgressBytes = cmp.Or(u.EgressBytes, before.EgressBytes)
	return &out
}

// stopMeasured returns the end of a life whose sandbox is torn down later, with what its place measured so far. less says
// that a vendor's teardown may tell more of what is charged.
func (m *Manager) stopMeasured(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) (stop book.Ending, less bool, err error) {
	stop = m.endingOf(row, row.EndedAt)
	b, err := m.openToEnd(ctx, row)
	if err != nil || b == nil {
		return stop, false, nil // its teardown reports it
	}
	if stop.Usage = m.lastMeasure(ctx, l, b, row, row.Handle); stop.Usage != nil && stop.Source == "ours" {
		stop.At = m.book.Now() // what was measured meanwhile is within
	}
	stop, err = stop.Believed(ctx, l, row, nil)
	less = row.EndedAt.IsZero() && !m.selfHosted(row.Extension) && lacksMeasure(ctx, l, b, row, stop.Usage)
	return stop, less, err
}

// coveredBeside reports whether a new life can be paid for while all is still held for the one before it.
func (m *Manager) coveredBeside(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, r *ledger.Reserve,
	ceilings []ledger.Ceiling) bool {
	limits := m.limits(ctx, row.Account)
	if limits == nil {
		return false
	}
	if _, err := r.Against(row.Account, limits.Balances, limits.Budgets, nil, nil); err != nil {
		return false
	}
	paces, err := l.Paces(ctx, ceilings, r)
	return err == nil && !slices.ContainsFunc(paces, func(p ledger.Pace) bool { return p.Refusal("") != nil })
}

// refusedMeasure reports measures that cannot be true.
func refusedMeasure(row ledger.Sandbox, gone book.Ending) (notice.Notice, bool) {
	if len(gone.Refused) == 0 {
		return notice.Notice{}, false
	}
	return notice.Notice{Summary: "A measurement was not believed",
		Detail: fmt.Sprintf("%s reported impossible usage for sandbox %s (%s): %s. Its charges count what was allocated until %s. Compare "+
			"them with the bill.",
			row.Extension, row.ID, row.Name, strings.Join(gone.Refused, "; "), gone.At.UTC().Format(time.RFC3339))}, true
}
