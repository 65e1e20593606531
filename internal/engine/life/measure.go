package life

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
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
	if l == nil || h.IsZero() || b.Can(extensions.PowerUsage) != nil {
		return nil
	}
	meters, err := l.Meters(context.WithoutCancel(ctx), row.ID)
	if n := len(meters); err != nil || n == 0 || !meters[n-1].Open() || !meters[n-1].CountsMeasures() {
		return nil
	}
	u, err := b.Usage(ctx, h)
	if err != nil {
		m.log.Info("the meter of a place could not be read", slog.String("sandbox", string(row.ID)), slog.Any("error", err))
		return nil
	}
	return &u
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

// stopMeasured returns the end of a life whose sandbox is torn down later, with what its place measured so far.
func (m *Manager) stopMeasured(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) (book.Ending, error) {
	stop := m.endingOf(row, row.EndedAt)
	b, err := m.openToEnd(ctx, row)
	if err != nil || b == nil {
		return stop, nil // its teardown reports it
	}
	if stop.Usage = m.lastMeasure(ctx, l, b, row, row.Handle); stop.Usage != nil && stop.Source == "ours" {
		stop.At = m.book.Now() // what was measured meanwhile is within
	}
	return stop.Believed(ctx, l, row, nil)
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
