package ledger

import (
	"cmp"
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// UsageFilter selects meters and their charges; zero fields select all. What
// has ended belongs to the period in which its meter ended.
type UsageFilter struct {
	From, To  time.Time // From <= end < To; for what runs they do not count
	Account   string    // "org/workspace", or "org" for all of its workspaces
	SandboxID extensions.ID
	Profile   string // id, of any version
	Extension string
	Host      string
	Component string // base and variants: "vcpu" is "vcpu:paused" too
	Actor     string
	Harness   string
	RunID     string
}

// ChargeRow is one charge with all that is known of it.
type ChargeRow struct {
	Charge
	For        Attribution
	SandboxID  extensions.ID
	Generation int64
	// Mode is that of the segments the charge is for; "" is the whole meter.
	Mode Mode
	// StartedAt and EndedAt bound what the charge is for: the segments of its
	// mode from its own on, or the whole meter.
	StartedAt, EndedAt     time.Time
	MeterStart, MeterEnd   time.Time
	StartSource, EndSource string
	EndEstimated           bool
	// Prices are those of the meter, without the list of them; zero where the
	// meter's rates are of another form.
	Prices meter.PriceSnapshot
}

// meterPage is how many meters are read at a time. Between pages nothing is
// held open, so that a slow reader is in nobody's way.
const meterPage = 500

// EachCharge implements Ledger.
func (s *store) EachCharge(ctx context.Context, f UsageFilter, yield func(ChargeRow) error) error {
	var rates lastRates
	return s.eachPage(ctx, f, false, func(ms []Meter) error {
		var w where
		oneOf(&w, "meter_id", idsOf(ms))
		w.component("", f.Component)
		charges, err := readAll(ctx, s, "charges", (*Charge).fields, w.tail(""), w.args...)
		if err != nil {
			return err
		}
		byMeter := map[string][]Charge{}
		for _, c := range charges {
			byMeter[c.MeterID] = append(byMeter[c.MeterID], c)
		}
		for _, m := range ms {
			cs := byMeter[m.ID]
			slices.SortFunc(cs, func(a, b Charge) int {
				return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Component, b.Component))
			})
			for _, c := range cs {
				if err := yield(m.chargeRow(c, rates.of(m))); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// EachOpenMeter implements Ledger.
func (s *store) EachOpenMeter(ctx context.Context, f UsageFilter, yield func(Meter) error) error {
	return s.eachPage(ctx, f, true, func(ms []Meter) error {
		for _, m := range ms {
			if err := yield(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachPage reads meters with their segments in the order of their ends and
// ids, the open ones or the closed ones.
func (s *store) eachPage(ctx context.Context, f UsageFilter, open bool, yield func([]Meter) error) error {
	if s.reader == nil {
		return nil
	}
	var last Meter
	for {
		w := f.meters(open)
		w.and("(closed_at, id) > (?, ?)", toMicros(last.ClosedAt), last.ID)
		ms, err := readAll(ctx, s, "meters", (*Meter).fields, w.tail("ORDER BY closed_at, id LIMIT ?"), append(w.args, meterPage)...)
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

func (s *store) addSegments(ctx context.Context, ms []Meter) error {
	type row struct {
		meter string
		Segment
	}
	var w where
	oneOf(&w, "meter_id", idsOf(ms))
	rows, err := readAll(ctx, s, "meter_segments", func(r *row) []field { return r.fields(&r.meter) }, w.tail("ORDER BY meter_id, seq"), w.args...)
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

func idsOf(ms []Meter) []string {
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.ID
	}
	return ids
}

// meters are the conditions on the table of meters.
func (f UsageFilter) meters(open bool) *where {
	w := &where{}
	switch {
	case open:
		w.and("closed_at = 0")
	default:
		w.and("closed_at >= ?", max(1, toMicros(f.From)))
		if !f.To.IsZero() {
			w.and("closed_at < ?", toMicros(f.To))
		}
	}
	if org := StreamOf(f.Account); org != f.Account {
		w.equal("account", f.Account)
	} else if org != "" {
		w.and("(account = ? OR substr(account, 1, ?) = ?)", org, utf8.RuneCountInString(org)+1, org+"/")
	}
	w.equal("sandbox_id", string(f.SandboxID))
	w.equal("profile", f.Profile)
	w.equal("extension", f.Extension)
	w.equal("host", f.Host)
	w.equal("actor", f.Actor)
	w.equal("harness", f.Harness)
	w.equal("run_id", f.RunID)
	return w
}

// component selects one, with its variants after a colon.
func (w *where) component(table, name string) {
	if name != "" {
		w.and("("+table+"component = ? OR substr("+table+"component, 1, ?) = ?)", name, utf8.RuneCountInString(name)+1, name+":")
	}
}

func (m Meter) chargeRow(c Charge, prices meter.PriceSnapshot) ChargeRow {
	r := ChargeRow{Charge: c, For: m.For, SandboxID: m.SandboxID, Generation: m.Generation, StartedAt: m.OpenedAt, EndedAt: m.ClosedAt,
		MeterStart: m.OpenedAt, MeterEnd: m.ClosedAt, StartSource: m.StartSource, EndSource: m.EndSource, EndEstimated: m.EndEstimated, Prices: prices}
	if c.Segment < 1 || c.Segment > int64(len(m.Segments)) {
		return r
	}
	first := m.Segments[c.Segment-1]
	r.Mode, r.StartedAt, r.EndedAt = first.Mode, first.StartedAt, first.EndedAt
	for _, s := range m.Segments[c.Segment:] {
		if s.Mode == first.Mode {
			r.EndedAt = s.EndedAt
		}
	}
	return r
}

// lastRates remembers the prices decoded last: neighbours often have the same.
type lastRates struct {
	text   string
	prices meter.PriceSnapshot
}

func (r *lastRates) of(m Meter) meter.PriceSnapshot {
	if text := string(m.Rates); text != r.text {
		r.text = text
		r.prices, _ = meter.DecodePriceSnapshot(text) // of another form: not told
		r.prices.Prices, r.prices.Notes = nil, nil
	}
	return r.prices
}
