package sqlstore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
)

// rows compares every row with the fold of its events.
func (a *audit) rows([]chain.Head) error {
	sandboxes, err := selectAll(a.ctx, a.store, a.q, "sandboxes", sandboxRow, "ORDER BY id")
	if err != nil {
		return err
	}
	for i := range sandboxes {
		s := &sandboxes[i]
		a.Report.Sandboxes++
		a.fold(chain.RowKey{Table: "sandboxes", Key: string(s.ID)}, sandboxRow(s), sandboxRow(&ledger.Sandbox{}))
		if s.ClaimsName && lifecycle.FreesName(s.State) {
			a.Problem("sandbox %s is %s but still claims its name", s.ID, s.State)
		}
		if !lifecycle.Valid(s.State) {
			a.Problem("sandbox %s is in an unknown state %q", s.ID, s.State)
		}
	}
	snapshots, err := selectAll(a.ctx, a.store, a.q, "snapshots", snapshotRow, "ORDER BY id")
	if err != nil {
		return err
	}
	for i := range snapshots {
		a.fold(chain.RowKey{Table: "snapshots", Key: snapshots[i].ID}, snapshotRow(&snapshots[i]), snapshotRow(&ledger.Snapshot{}))
	}
	hosts, err := selectAll(a.ctx, a.store, a.q, "hosts", hostRow, "ORDER BY account, name")
	if err != nil {
		return err
	}
	for i := range hosts {
		a.fold(chain.RowKey{Table: "hosts", Account: hosts[i].Account, Key: hosts[i].Name}, hostRow(&hosts[i]), hostRow(&ledger.Host{}))
	}
	for _, key := range slices.SortedFunc(maps.Keys(a.Folded),
		func(x, y chain.RowKey) int { return cmp.Compare(fmt.Sprint(x), fmt.Sprint(y)) }) {
		a.Problem("%s has events of %s %s but no row", a.url, key.Table, key.Key)
	}
	return nil
}

// fold checks one row and marks its events as used.
func (a *audit) fold(key chain.RowKey, row, zero []field) {
	told, ok := a.Folded[key]
	delete(a.Folded, key)
	if !ok {
		a.Problem("%s %s has no events", key.Table, key.Key)
		return
	}
	have, err := values(row)
	blank, zeroErr := values(zero)
	if err != nil || zeroErr != nil {
		a.Problem("%s %s cannot be read", key.Table, key.Key)
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
			a.Problem("%s %s: column %s differs from its events", key.Table, key.Key, f.name)
		}
	}
}

func sameJSON(x, y json.RawMessage) bool {
	cx, errX := chain.Canonical(x)
	cy, errY := chain.Canonical(y)
	return errX == nil && errY == nil && string(cx) == string(cy)
}

// operations checks that every unsettled row has an open operation, and that no intent is ahead of its
// subject.
func (a *audit) operations([]chain.Head) error {
	checks := []struct{ what, stmt string }{
		{"has an unfinished operation without a holder", `SELECT s.id, s.state FROM sandboxes s
			WHERE s.state IN ('requested', 'provisioning', 'destroying')
				AND NOT EXISTS (SELECT 1 FROM intents i WHERE i.open_key = s.id) ORDER BY s.id`},
		{"has ended but has an open intent", `SELECT s.id, s.state FROM sandboxes s JOIN intents i ON i.open_key = s.id
			WHERE s.state = 'destroyed' ORDER BY s.id`},
		{"has a fence that differs from its latest intent's", `SELECT s.id, s.state FROM sandboxes s
			WHERE s.fence <> (SELECT coalesce(max(i.fence), 0) FROM intents i WHERE i.subject = s.id) ORDER BY s.id`},
		{"has a fence that differs from its latest intent's", `SELECT s.id, s.state FROM snapshots s
			WHERE s.fence <> (SELECT coalesce(max(i.fence), 0) FROM intents i WHERE i.subject = s.id) ORDER BY s.id`},
		{"belongs to nothing", `SELECT i.op_key, i.state FROM intents i WHERE NOT EXISTS (SELECT 1 FROM sandboxes s WHERE s.id = i.subject)
			AND NOT EXISTS (SELECT 1 FROM snapshots n WHERE n.id = i.subject) ORDER BY i.op_key`},
		{"is open in one column but finished in another",
			`SELECT op_key, state FROM intents WHERE (state = 'dispatched') <> (open_key IS NOT NULL) ORDER BY op_key`},
	}
	for _, c := range checks {
		err := query(a.ctx, a.store, a.q, c.stmt, nil, func(scan func(...any) error) error {
			var id, state string
			if err := scan(&id, &state); err != nil {
				return err
			}
			a.Problem("%s (%s) %s", id, state, c.what)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// metering checks that every live sandbox has one meter, and that segments fill a meter's life without gap
// or overlap.
func (a *audit) metering([]chain.Head) error {
	err := query(a.ctx, a.store, a.q, `SELECT s.id, s.state, (SELECT count(*) FROM meters m WHERE m.sandbox_id = s.id
		AND m.snapshot_id = '' AND m.closed_at = 0)
		FROM sandboxes s ORDER BY s.id`, nil,
		func(scan func(...any) error) error {
			var id string
			var state lifecycle.State
			var open int64
			if err := scan(&id, &state, &open); err != nil {
				return err
			}
			if open > 1 || lifecycle.Usable(state) && open != 1 || lifecycle.Terminal(state) && open != 0 {
				a.Problem("sandbox %s is %s and has %d open meters", id, state, open)
			}
			return nil
		})
	if err != nil {
		return err
	}
	if err := a.keeping(); err != nil {
		return err
	}
	ms, err := loadMeters(a.ctx, a.store, a.q, "ORDER BY id")
	for _, m := range ms {
		a.add(m.Gaps())
	}
	if err != nil {
		return err
	}
	return a.charges(ms)
}

// keeping checks that every snapshot that is kept has one open meter, and no deleted one has any.
func (a *audit) keeping() error {
	return query(a.ctx, a.store, a.q, `SELECT s.id, s.state, (SELECT count(*) FROM meters m WHERE m.snapshot_id = s.id AND m.closed_at = 0)
		FROM snapshots s ORDER BY s.id`, nil,
		func(scan func(...any) error) error {
			var id string
			var state ledger.SnapshotState
			var open int64
			if err := scan(&id, &state, &open); err != nil {
				return err
			}
			if open > 1 || state == ledger.SnapshotReady && open != 1 || state == ledger.SnapshotDeleted && open != 0 {
				a.Problem("snapshot %s is %s and has %d open meters", id, state, open)
			}
			return nil
		})
}

// charges compares the booked charges with the closing events.
func (a *audit) charges(ms []bank.Meter) error {
	rows, err := selectAll(a.ctx, a.store, a.q, "charges", chargeRow, "ORDER BY meter_id, segment, component")
	if err != nil {
		return err
	}
	have, booked := map[string]map[chain.ChargeFact]bool{}, map[string][]bank.Charge{}
	for _, c := range rows {
		booked[c.MeterID] = append(booked[c.MeterID], c)
		if have[c.MeterID] == nil {
			have[c.MeterID] = map[chain.ChargeFact]bool{}
		}
		have[c.MeterID][chain.FactOf(c)] = true
	}
	for _, m := range ms {
		told := a.Booked[m.ID]
		same := len(told) == len(have[m.ID])
		for _, c := range told {
			same = same && have[m.ID][c] && c.Segment <= int64(len(m.Segments))
		}
		if !same || m.Open() && len(told) > 0 {
			a.Problem("meter %s: its charges differ from its events", m.ID)
		}
		var used bank.Sums
		if !m.Open() {
			used, err = bank.SumsOf(m, booked[m.ID])
		}
		if err != nil || used != m.Used {
			a.Problem("meter %s: its sums differ from its segments and charges", m.ID)
		}
	}
	return nil
}
