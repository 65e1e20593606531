package ledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// meterFact is what an event says of the meter.
type meterFact struct {
	ID       string       `json:"id"`
	OpenedAt string       `json:"opened_at,omitempty"`
	Mode     Mode         `json:"mode,omitempty"` // of the segment begun
	ClosedAt string       `json:"closed_at,omitempty"`
	Source   string       `json:"source,omitempty"`
	Charged  string       `json:"charged,omitempty"` // the meter closed
	Charges  []chargeFact `json:"charges,omitempty"`
}

type chargeFact struct {
	Segment   int64  `json:"segment"`
	Component string `json:"component"`
	Quantity  int64  `json:"quantity"`
	Unit      string `json:"unit"`
	UnitPrice units  `json:"unit_price_pico"`
	Amount    units  `json:"amount_nano"`
	Currency  string `json:"currency"`
	Memo      string `json:"memo,omitempty"`
}

// units are a price or an amount; null in an event where nobody knows it.
type units struct {
	n       int64
	unknown bool
}

func (u units) MarshalJSON() ([]byte, error) {
	if u.unknown {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, u.n, 10), nil
}

func (u *units) UnmarshalJSON(raw []byte) error {
	var n *int64
	err := json.Unmarshal(raw, &n)
	if *u = (units{unknown: n == nil}); n != nil {
		u.n = *n
	}
	return err
}

func (c Charge) fact() chargeFact {
	unknown := !c.Known()
	return chargeFact{c.Segment, c.Component, c.Quantity, c.Unit, units{c.UnitPrice, unknown}, units{c.Amount, unknown}, c.Currency, c.Memo}
}

func (t *tx) meter(row Sandbox, ops MeterOps) (*meterFact, error) {
	if ops == (MeterOps{}) {
		return nil, nil
	}
	m, err := t.openMeter(row.ID)
	if err != nil {
		return nil, err
	}
	var f *meterFact
	if ops.Close != nil && m != nil {
		if f, err = t.closeMeter(row, *m, *ops.Close); err != nil {
			return nil, err
		}
		m = nil
	}
	if ops.Open != nil {
		if m != nil {
			return nil, failure(extensions.KindConflict, string(row.ID), &Stale{Current: row, Why: "its meter runs already"})
		}
		opened, err := t.startMeter(row, *ops.Open)
		if err != nil {
			return nil, err
		}
		if m, err = t.openMeter(row.ID); err != nil {
			return nil, err
		}
		if f == nil {
			f = &meterFact{}
		}
		f.ID, f.OpenedAt, f.Mode = opened.ID, instant(opened.OpenedAt), opened.Segments[0].Mode
	}
	if ops.Switch != nil {
		if m == nil {
			return nil, failure(extensions.KindConflict, string(row.ID), &Stale{Current: row, Why: "its meter does not run"})
		}
		if f == nil {
			f = &meterFact{}
		}
		f.ID, f.Mode = m.ID, ops.Switch.Mode
		return f, t.switchMeter(*m, *ops.Switch)
	}
	return f, nil
}

func instant(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

func (t *tx) openMeter(id extensions.ID) (*Meter, error) {
	ms, err := loadMeters(t.ctx, t.store, t.sql, "WHERE open_key = ?"+t.dialect.forUpdate, string(id))
	if err != nil || len(ms) == 0 {
		return nil, err
	}
	return &ms[0], nil
}

func (t *tx) startMeter(row Sandbox, o MeterOpen) (Meter, error) {
	m := Meter{ID: fmt.Sprintf("%s/%d", row.ID, row.Generation), SandboxID: row.ID, Generation: row.Generation, Currency: o.Currency,
		Rates: o.Rates, OpenedAt: t.orNow(o.At), StartSource: o.Source, For: row.attribution()}
	seg := Segment{Seq: 1, Mode: o.Mode, Sizes: o.Sizes, StartedAt: m.OpenedAt}
	if seg.Mode == "" {
		seg.Mode = Running
	}
	m.Segments = []Segment{seg}
	if err := t.insert("ledger.meter.open", "meters", m.fields()); err != nil {
		if t.dialect.unique(err) {
			return m, failure(extensions.KindConflict, string(row.ID), &Stale{Current: row, Why: fmt.Sprintf("generation %d was metered already", row.Generation)})
		}
		return m, err
	}
	return m, t.insert("ledger.meter.segment.open", "meter_segments", seg.fields(&m.ID))
}

// maxConsumer is how many characters of a consumer's fields are kept: they are
// in an index.
const maxConsumer = 256

func (s Sandbox) attribution() Attribution {
	var request struct {
		Consumer struct {
			Actor   string `json:"actor"`
			Harness string `json:"harness"`
			RunID   string `json:"run_id"`
		} `json:"consumer"`
	}
	_ = json.Unmarshal(s.Request, &request) // of any form: what is not there is empty
	c := request.Consumer
	for _, text := range []*string{&c.Actor, &c.Harness, &c.RunID} {
		*text = extensions.Clean(*text, maxConsumer)
	}
	return Attribution{Account: s.Account, Name: s.Name, Profile: s.Profile, ProfileVersion: s.ProfileVersion,
		Extension: s.Extension, Host: s.Host, Actor: c.Actor, Harness: c.Harness, RunID: c.RunID}
}

func (t *tx) orNow(at time.Time) time.Time {
	if at.IsZero() {
		return t.now
	}
	return at.UTC().Truncate(time.Microsecond)
}

// endSegment ends the running segment and returns it, with its true end.
func (t *tx) endSegment(m Meter, at time.Time) (Segment, error) {
	seg := m.Segments[len(m.Segments)-1]
	seg.EndedAt = t.orNow(at)
	if seg.EndedAt.Before(seg.StartedAt) {
		seg.EndedAt = seg.StartedAt
	}
	return seg, t.update("ledger.meter.segment.close", "meter_segments", seg.fields(&m.ID), "meter_id = ? AND seq = ? AND ended_at = 0", m.ID, seg.Seq)
}

func (t *tx) switchMeter(m Meter, s MeterSwitch) error {
	seg, err := t.endSegment(m, s.At)
	if err != nil {
		return err
	}
	next := Segment{Seq: seg.Seq + 1, Mode: s.Mode, Sizes: s.Sizes, StartedAt: seg.EndedAt}
	return t.insert("ledger.meter.segment.open", "meter_segments", next.fields(&m.ID))
}

func (t *tx) closeMeter(row Sandbox, m Meter, c MeterClose) (*meterFact, error) {
	seg, err := t.endSegment(m, c.At)
	if err != nil {
		return nil, err
	}
	m.Segments[len(m.Segments)-1] = seg
	m.ClosedAt, m.EndSource, m.EndEstimated = seg.EndedAt, c.Source, c.Estimated
	charges, err := t.chargesOf(row, m, c)
	if err == nil {
		m.Used, err = sumsOf(m, charges)
	}
	if err != nil {
		return nil, failure(extensions.KindOf(err), string(m.SandboxID), fmt.Errorf("pricing meter %s: %w", m.ID, err))
	}
	if err := t.update("ledger.meter.close", "meters", m.fields(), "id = ? AND closed_at = 0", m.ID); err != nil {
		return nil, err
	}
	f := &meterFact{ID: m.ID, ClosedAt: instant(m.ClosedAt), Source: c.Source, Charged: m.ID}
	for _, ch := range charges {
		if ch.Amount < 0 || ch.Quantity < 0 || ch.UnitPrice < 0 {
			return nil, failure(extensions.KindInvalid, string(m.SandboxID), fmt.Errorf("the charge for %s of meter %s is negative", ch.Component, m.ID))
		}
		if !ch.Known() && (ch.Amount != 0 || ch.UnitPrice != 0) {
			return nil, failure(extensions.KindInvalid, string(m.SandboxID), fmt.Errorf("the charge for %s of meter %s has an amount that is not known", ch.Component, m.ID))
		}
		if ch.Segment < 0 || ch.Segment > seg.Seq {
			return nil, failure(extensions.KindInvalid, string(m.SandboxID), fmt.Errorf("a charge for segment %d, which meter %s has not", ch.Segment, m.ID))
		}
		ch.MeterID = m.ID
		if err := t.insert("ledger.charge", "charges", ch.fields()); err != nil {
			if t.dialect.unique(err) {
				err = failure(extensions.KindInvalid, string(m.SandboxID), fmt.Errorf("two charges for %s of segment %d", ch.Component, ch.Segment))
			}
			return nil, err
		}
		f.Charges = append(f.Charges, ch.fact())
	}
	return f, nil
}

// chargesOf are those of the closed meter. A life that platform credit does
// not pay for is somebody else's bill, whoever would be billed by its prices.
func (t *tx) chargesOf(row Sandbox, m Meter, c MeterClose) ([]Charge, error) {
	if t.options.Charges != nil {
		if charges, ok := t.options.Charges(m); ok {
			return charges, nil
		}
	}
	charges, err := Price(m, c.Usage)
	if err != nil {
		return nil, err
	}
	held, err := t.held(string(m.SandboxID))
	if err != nil {
		return nil, err
	}
	return m.Paid(charges, row.Payer, held), nil
}

// Paid tells of charges, as Price makes them, who pays: as the payer of the life
// and what is set aside for it say. What no wallet pays is a memo of the kind
// that it is held in, or that the payer is, or, where nobody decided and somebody
// is sent a bill, of the user's own key.
func (m Meter) Paid(charges []Charge, payer string, held []Transfer) []Charge {
	out := slices.Clone(charges)
	for i := range out {
		c := &out[i]
		kind := pays(payer, held, c.Currency, c.Memo)
		if kind == AccountWallet {
			continue
		}
		_, place, _ := strings.Cut(c.Memo, ":")
		c.Memo = kind + ":" + cmp.Or(place, m.For.Extension)
	}
	return out
}
