package ledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
)

// rows compares every row with the fold of its events.
func (a *audit) rows([]Head) error {
	sandboxes, err := selectAll(a.ctx, a.store, a.q, "sandboxes", (*Sandbox).fields, "ORDER BY id")
	if err != nil {
		return err
	}
	for i := range sandboxes {
		s := &sandboxes[i]
		a.report.Sandboxes++
		a.fold(rowKey{"sandboxes", "", string(s.ID)}, s.fields(), (&Sandbox{}).fields())
		if s.ClaimsName && lifecycle.FreesName(s.State) {
			a.problem("sandbox %s is %s and still claims its name", s.ID, s.State)
		}
		if !lifecycle.Valid(s.State) {
			a.problem("sandbox %s is in an unknown state %q", s.ID, s.State)
		}
	}
	snapshots, err := selectAll(a.ctx, a.store, a.q, "snapshots", (*Snapshot).fields, "ORDER BY id")
	if err != nil {
		return err
	}
	for i := range snapshots {
		a.fold(rowKey{"snapshots", "", snapshots[i].ID}, snapshots[i].fields(), (&Snapshot{}).fields())
	}
	hosts, err := selectAll(a.ctx, a.store, a.q, "hosts", (*Host).fields, "ORDER BY account, name")
	if err != nil {
		return err
	}
	for i := range hosts {
		a.fold(rowKey{"hosts", hosts[i].Account, hosts[i].Name}, hosts[i].fields(), (&Host{}).fields())
	}
	for _, key := range slices.SortedFunc(maps.Keys(a.folded), func(x, y rowKey) int { return cmp.Compare(fmt.Sprint(x), fmt.Sprint(y)) }) {
		a.problem("%s has events of %s %s and no row", a.url, key.table, key.key)
	}
	return nil
}

// fold checks one row and crosses its events off.
func (a *audit) fold(key rowKey, row, zero []field) {
	told, ok := a.folded[key]
	delete(a.folded, key)
	if !ok {
		a.problem("%s %s has no events", key.table, key.key)
		return
	}
	have, err := values(row)
	blank, zeroErr := values(zero)
	if err != nil || zeroErr != nil {
		a.problem("%s %s cannot be read", key.table, key.key)
		return
	}
	for i, f := range row {
		want, ok := told[f.name]
		if !ok {
			if want, err = f.json(blank[i]); err != nil {
				continue
			}
		}
		is, err := f.json(have[i])
		if err != nil || !sameJSON(is, want) {
			a.problem("%s %s: column %s is not what its events say", key.table, key.key, f.name)
		}
	}
}

func sameJSON(x, y json.RawMessage) bool {
	cx, errX := canonical(x)
	cy, errY := canonical(y)
	return errX == nil && errY == nil && string(cx) == string(cy)
}

// operations checks that every unsettled row has someone responsible, and
// that no intent outruns its subject.
func (a *audit) operations([]Head) error {
	checks := []struct{ what, stmt string }{
		{"is in the middle of an operation that nobody holds", `SELECT s.id, s.state FROM sandboxes s
			WHERE s.state IN ('requested', 'provisioning', 'destroying') AND NOT EXISTS (SELECT 1 FROM intents i WHERE i.open_key = s.id) ORDER BY s.id`},
		{"is over and has an open intent", `SELECT s.id, s.state FROM sandboxes s JOIN intents i ON i.open_key = s.id WHERE s.state = 'destroyed' ORDER BY s.id`},
		{"has a fence that is not that of its latest intent", `SELECT s.id, s.state FROM sandboxes s
			WHERE s.fence <> (SELECT coalesce(max(i.fence), 0) FROM intents i WHERE i.subject = s.id) ORDER BY s.id`},
		{"has a fence that is not that of its latest intent", `SELECT s.id, s.state FROM snapshots s
			WHERE s.fence <> (SELECT coalesce(max(i.fence), 0) FROM intents i WHERE i.subject = s.id) ORDER BY s.id`},
		{"belongs to nothing", `SELECT i.op_key, i.state FROM intents i WHERE NOT EXISTS (SELECT 1 FROM sandboxes s WHERE s.id = i.subject)
			AND NOT EXISTS (SELECT 1 FROM snapshots n WHERE n.id = i.subject) ORDER BY i.op_key`},
		{"is open in one column and finished in another", `SELECT op_key, state FROM intents WHERE (state = 'dispatched') <> (open_key IS NOT NULL) ORDER BY op_key`},
	}
	for _, c := range checks {
		err := query(a.ctx, a.store, a.q, c.stmt, nil, func(scan func(...any) error) error {
			var id, state string
			if err := scan(&id, &state); err != nil {
				return err
			}
			a.problem("%s (%s) %s", id, state, c.what)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// metering checks that live sandboxes are metered once, and that segments
// fill a meter's life without gap or overlap.
func (a *audit) metering([]Head) error {
	err := query(a.ctx, a.store, a.q, `SELECT s.id, s.state, (SELECT count(*) FROM meters m WHERE m.sandbox_id = s.id AND m.closed_at = 0) FROM sandboxes s ORDER BY s.id`, nil,
		func(scan func(...any) error) error {
			var id string
			var state lifecycle.State
			var open int64
			if err := scan(&id, &state, &open); err != nil {
				return err
			}
			if open > 1 || lifecycle.Usable(state) && open != 1 || lifecycle.Terminal(state) && open != 0 {
				a.problem("sandbox %s is %s and has %d open meters", id, state, open)
			}
			return nil
		})
	if err != nil {
		return err
	}
	ms, err := loadMeters(a.ctx, a.store, a.q, "ORDER BY id")
	for _, m := range ms {
		a.segments(m)
	}
	if err != nil {
		return err
	}
	return a.charges(ms)
}

// charges compares what is booked with what the events of closing said.
func (a *audit) charges(ms []Meter) error {
	rows, err := selectAll(a.ctx, a.store, a.q, "charges", (*Charge).fields, "ORDER BY meter_id, segment, component")
	if err != nil {
		return err
	}
	have, booked := map[string]map[chargeFact]bool{}, map[string][]Charge{}
	for _, c := range rows {
		booked[c.MeterID] = append(booked[c.MeterID], c)
		if have[c.MeterID] == nil {
			have[c.MeterID] = map[chargeFact]bool{}
		}
		have[c.MeterID][c.fact()] = true
	}
	for _, m := range ms {
		told := a.booked[m.ID]
		same := len(told) == len(have[m.ID])
		for _, c := range told {
			same = same && have[m.ID][c] && c.Segment <= int64(len(m.Segments))
		}
		if !same || m.Open() && len(told) > 0 {
			a.problem("meter %s: its charges are not what its events say", m.ID)
		}
		var used Sums
		if !m.Open() {
			used, err = sumsOf(m, booked[m.ID])
		}
		if err != nil || used != m.Used {
			a.problem("meter %s: its sums are not those of its segments and charges", m.ID)
		}
	}
	return nil
}

func (a *audit) segments(m Meter) {
	at := m.OpenedAt
	for i, s := range m.Segments {
		if s.Seq != int64(i+1) || !s.StartedAt.Equal(at) {
			a.problem("meter %s: segment %d does not start where the one before ends", m.ID, s.Seq)
		}
		last := i == len(m.Segments)-1
		if !last && s.EndedAt.IsZero() || !s.EndedAt.IsZero() && s.EndedAt.Before(s.StartedAt) {
			a.problem("meter %s: segment %d has no end, or ends before it starts", m.ID, s.Seq)
		}
		at = s.EndedAt
	}
	if len(m.Segments) == 0 || !at.Equal(m.ClosedAt) && !(m.ClosedAt.IsZero() && at.Equal(time.Time{})) {
		a.problem("meter %s: its segments do not fill its life", m.ID)
	}
}
