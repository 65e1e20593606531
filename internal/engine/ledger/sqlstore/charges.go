package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
)

// meterPage is how many meters are read at a time. Nothing stays open between pages, so a slow reader
// blocks nobody.
const meterPage = 500

// EachCharge implements Ledger.
func (s *store) EachCharge(ctx context.Context, f ledger.UsageFilter, yield func(bank.ChargeRow) error) error {
	var rows bank.ChargeRows
	return s.eachPage(ctx, f, false, func(ms []bank.Meter) error {
		var w where
		oneOf(&w, "meter_id", idsOf(ms))
		w.component("", f.Component)
		charges, err := readAll(ctx, s, "charges", chargeRow, w.tail(""), w.args...)
		if err != nil {
			return err
		}
		byMeter := map[string][]bank.Charge{}
		for _, c := range charges {
			byMeter[c.MeterID] = append(byMeter[c.MeterID], c)
		}
		for _, m := range ms {
			cs := byMeter[m.ID]
			slices.SortFunc(cs, func(a, b bank.Charge) int {
				return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Component, b.Component))
			})
			for _, c := range cs {
				if err := yield(rows.Row(m, c)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// EachOpenMeter implements Ledger.
func (s *store) EachOpenMeter(ctx context.Context, f ledger.UsageFilter, yield func(bank.Meter) error) error {
	return s.eachPage(ctx, f, true, func(ms []bank.Meter) error {
		for _, m := range ms {
			if err := yield(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachPage reads open or closed meters with their segments, ordered by end and id.
func (s *store) eachPage(ctx context.Context, f ledger.UsageFilter, open bool, yield func([]bank.Meter) error) error {
	if s.reader == nil {
		return nil
	}
	var last bank.Meter
	for {
		w := metersOf(f, open)
		w.and("(closed_at, id) > (?, ?)", toMicros(last.ClosedAt), last.ID)
		ms, err := readAll(ctx, s, "meters", meterRow, w.tail("ORDER BY closed_at, id LIMIT ?"), append(w.args, meterPage)...)
		if err != nil || len(ms) == 0 {
			return err
		}
		if err := s.addSegments(ctx, ms); err != nil {
			return err
		}
		if err := yield(ms); err != nil || len(ms) < meterPage {
			return err
		}
		last = ms[len(ms)-1]
	}
}

func (s *store) addSegments(ctx context.Context, ms []bank.Meter) error {
	type row struct {
		meter string
		bank.Segment
	}
	var w where
	oneOf(&w, "meter_id", idsOf(ms))
	rows, err := readAll(ctx, s, "meter_segments", func(r *row) []field { return segmentRow(&r.Segment, &r.meter) },
		w.tail("ORDER BY meter_id, seq"), w.args...)
	if err != nil {
		return err
	}
	at := make(map[string]int, len(ms))
	for i := range ms {
		at[ms[i].ID] = i
	}
	for _, r := range rows {
		m := &ms[at[r.meter]]
		m.Segments = append(m.Segments, r.Segment)
	}
	return nil
}

func idsOf(ms []bank.Meter) []string {
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.ID
	}
	return ids
}

// metersOf returns the conditions on the table of meters.
func metersOf(f ledger.UsageFilter, open bool) *where {
	w := &where{}
	w.and("(snapshot_id = '' OR rates <> '')") // what nobody charges for is no usage
	switch {
	case open:
		w.and("closed_at = 0")
	default:
		w.and("closed_at >= ?", max(1, toMicros(f.From)))
		if !f.To.IsZero() {
			w.and("closed_at < ?", toMicros(f.To))
		}
	}
	if org := ledger.StreamOf(f.Account); org != f.Account {
		w.equal("account", f.Account)
	} else if org != "" {
		w.and("(account = ? OR substr(account, 1, ?) = ?)", org, utf8.RuneCountInString(org)+1, org+"/")
	}
	w.equal("sandbox_id", string(f.SandboxID))
	w.equal("snapshot_id", f.SnapshotID)
	w.equal("profile", f.Profile)
	w.equal("extension", f.Extension)
	w.equal("host", f.Host)
	w.equal("actor", f.Actor)
	w.equal("harness", f.Harness)
	w.equal("run_id", f.RunID)
	return w
}

// component selects one component with its variants, which follow a colon.
func (w *where) component(table, name string) {
	if name != "" {
		w.and("("+table+"component = ? OR substr("+table+"component, 1, ?) = ?)", name, utf8.RuneCountInString(name)+1, name+":")
	}
}
