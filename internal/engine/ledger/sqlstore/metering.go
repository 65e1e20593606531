package sqlstore

import (
	"fmt"
	"reflect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// meter applies a change to the sandbox's meter. charges are those of the meter that it closed.
func (t *tx) meter(row ledger.Sandbox, ops bank.MeterOps, held []bank.Transfer) (f *chain.MeterFact, charges []bank.Charge, err error) {
	if ops == (bank.MeterOps{}) {
		return nil, nil, nil
	}
	m, err := t.openMeter(row.ID)
	if err != nil {
		return nil, nil, err
	}
	if ops.Began != nil {
		if m, err = t.beginMeter(row, m, *ops.Began); err != nil {
			return nil, nil, err
		}
		f = &chain.MeterFact{ID: m.ID, OpenedAt: chain.Instant(m.OpenedAt), Mode: m.Last().Mode}
	}
	if ops.Close != nil && m != nil {
		closed, booked, err := t.closeMeter(row.Payer, *m, *ops.Close, held)
		if err != nil {
			return nil, nil, err
		}
		if f != nil {
			closed.OpenedAt, closed.Mode = f.OpenedAt, f.Mode
		}
		f, charges, m = closed, booked, nil
	}
	if ops.Open != nil {
		if m != nil {
			return nil, nil, fault.New(extensions.KindConflict, string(row.ID), &ledger.Stale{Current: row, Why: "its meter runs already"})
		}
		opened, err := t.startMeter(row, *ops.Open, 0)
		if err != nil {
			return nil, nil, err
		}
		if m, err = t.openMeter(row.ID); err != nil {
			return nil, nil, err
		}
		if f == nil {
			f = &chain.MeterFact{}
		}
		f.ID, f.OpenedAt, f.Mode = opened.ID, chain.Instant(opened.OpenedAt), opened.Last().Mode
	}
	if ops.Switch != nil {
		if m == nil {
			return nil, nil, fault.New(extensions.KindConflict, string(row.ID), &ledger.Stale{Current: row, Why: "its meter does not run"})
		}
		if f == nil {
			f = &chain.MeterFact{}
		}
		f.ID, f.Mode = m.ID, ops.Switch.Mode
		return f, charges, t.switchMeter(*m, *ops.Switch)
	}
	return f, charges, nil
}

func (t *tx) openMeter(id extensions.ID) (*bank.Meter, error) {
	ms, err := loadMeters(t.ctx, t.store, t.sql, "WHERE open_key = ?"+t.dialect.forUpdate, string(id))
	if err != nil || len(ms) == 0 {
		return nil, err
	}
	return &ms[0], nil
}

// beginMeter starts the next meter of the generation, or corrects the open one.
func (t *tx) beginMeter(row ledger.Sandbox, open *bank.Meter, o bank.MeterOpen) (*bank.Meter, error) {
	if open == nil {
		var before int64
		err := query(t.ctx, t.store, t.sql, "SELECT count(*) FROM meters WHERE sandbox_id = ? AND snapshot_id = '' AND generation = ?",
			[]any{string(row.ID), row.Generation}, func(scan func(...any) error) error { return scan(&before) })
		if err != nil {
			return nil, err
		}
		if _, err := t.startMeter(row, o, before); err != nil {
			return nil, err
		}
		return t.openMeter(row.ID)
	}
	m := open.Began(o)
	if reflect.DeepEqual(m, *open) {
		return open, nil
	}
	if err := t.update("ledger.meter.open", "meters", meterRow(&m), "id = ? AND closed_at = 0", m.ID); err != nil {
		return nil, err
	}
	last := m.Last()
	return &m, t.update("ledger.meter.segment.open", "meter_segments", segmentRow(&last, &m.ID), "meter_id = ? AND seq = ? AND ended_at = 0",
		m.ID, last.Seq)
}

func (t *tx) startMeter(row ledger.Sandbox, o bank.MeterOpen, before int64) (bank.Meter, error) {
	m := o.Opened(row.ID, row.Generation, before, row.Attribution(), t.now)
	if err := t.insert("ledger.meter.open", "meters", meterRow(&m)); err != nil {
		if t.dialect.unique(err) {
			return m, fault.New(extensions.KindConflict, string(row.ID),
				&ledger.Stale{Current: row, Why: fmt.Sprintf("generation %d was metered already", row.Generation)})
		}
		return m, err
	}
	return m, t.insertSegment(m, m.Last())
}

func (t *tx) insertSegment(m bank.Meter, s bank.Segment) error {
	return t.insert("ledger.meter.segment.open", "meter_segments", segmentRow(&s, &m.ID))
}

// endSegment writes the end of the running segment.
func (t *tx) endSegment(m bank.Meter, s bank.Segment) error {
	return t.update("ledger.meter.segment.close", "meter_segments", segmentRow(&s, &m.ID), "meter_id = ? AND seq = ? AND ended_at = 0", m.ID,
		s.Seq)
}

func (t *tx) switchMeter(m bank.Meter, s bank.MeterSwitch) error {
	ended, next := m.Switched(s, t.now)
	if err := t.endSegment(m, ended); err != nil {
		return err
	}
	return t.insertSegment(m, next)
}

func (t *tx) closeMeter(payer string, m bank.Meter, c bank.MeterClose,
	held []bank.Transfer) (*chain.MeterFact, []bank.Charge, error) {
	m = m.Closed(c, t.now)
	if err := t.endSegment(m, m.Last()); err != nil {
		return nil, nil, err
	}
	charges, err := t.options.Charges(m, c.Usage, payer, held)
	if err == nil {
		m, err = m.Charge(charges)
	}
	if err != nil {
		return nil, nil, fault.New(extensions.KindOf(err), m.Subject(), fmt.Errorf("pricing meter %s: %w", m.ID, err))
	}
	if err := t.update("ledger.meter.close", "meters", meterRow(&m), "id = ? AND closed_at = 0", m.ID); err != nil {
		return nil, nil, err
	}
	f := &chain.MeterFact{ID: m.ID, ClosedAt: chain.Instant(m.ClosedAt), Source: c.Source, Charged: m.ID, Refused: c.Refused}
	for _, ch := range charges {
		ch.MeterID = m.ID
		if err := t.insert("ledger.charge", "charges", chargeRow(&ch)); err != nil {
			if t.dialect.unique(err) {
				err = fault.New(extensions.KindInvalid, m.Subject(), fmt.Errorf("two charges for %s of segment %d", ch.Component, ch.Segment))
			}
			return nil, nil, err
		}
		f.Charges = append(f.Charges, chain.FactOf(ch))
	}
	return f, charges, nil
}
