package life

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// origin returns the snapshot that a sandbox starts from, by its ID or its name; nil if there is none, or if it was
// made on another machine: then the chosen place is asked for the ID.
func (m *Manager) origin(ctx context.Context, ref *extensions.SnapshotRef) (*ledger.Snapshot, error) {
	if ref == nil {
		return nil, nil
	}
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil, err
	}
	var s ledger.Snapshot
	if extensions.ValidSnapshotID(ref.ID) {
		s, err = l.GetSnapshot(ctx, ref.ID)
	} else {
		s, err = m.snapshotNamed(ctx, l, ref.ID)
	}
	switch {
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, err
	case s.State == ledger.SnapshotDeleted:
		return nil, snapshotOver(s, "was deleted at "+s.EndedAt.UTC().Format(time.RFC3339))
	case lifecycle.Overdue(m.book.Now(), s.KeptUntil()): // what lapses, use may have kept: its place knows
		return nil, snapshotOver(s, "expired at "+s.KeptUntil().UTC().Format(time.RFC3339))
	}
	return &s, nil
}

// snapshotNamed returns the one snapshot of the account that is kept under a name.
func (m *Manager) snapshotNamed(ctx context.Context, l *ledger.Ledger, name string) (ledger.Snapshot, error) {
	all, err := l.ListSnapshots(ctx, ledger.SnapshotFilter{Account: m.account, Live: true})
	if err != nil {
		return ledger.Snapshot{}, err
	}
	all = slices.DeleteFunc(all, func(s ledger.Snapshot) bool { return s.Name != name || s.State != ledger.SnapshotReady })
	if len(all) == 1 {
		return all[0], nil
	}
	refused := extensions.Errorf(extensions.KindInvalid, "the ledger %s has %d snapshots named %s in account %s", l.URL(), len(all),
		extensions.Clean(name, 80), m.account)
	return ledger.Snapshot{}, extensions.AtField("profile", refused.WithRemedy(
		"`sandboxer snapshot list` shows them: correct from_snapshot in the profile, or set from_snapshot to an ID"))
}

// source returns the sandbox that a request forks; nil if it forks none.
func (m *Manager) source(ctx context.Context, asked *plan.Asked) (*ledger.Sandbox, error) {
	id := extensions.ID(asked.Request.FromSandbox)
	if id == "" {
		return nil, nil
	}
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil, err
	}
	row, err := l.Get(ctx, id)
	if absent(err) {
		return nil, extensions.AtField("from_sandbox",
			extensions.Errorf(extensions.KindInvalid, "sandbox %s cannot be forked: the ledger %s does not know it", id, l.URL()).
				WithRemedy("check the ID and the provider's ledger, state_dir and account"))
	}
	if err != nil {
		return nil, err
	}
	return &row, asked.CheckSource(row, m.account, m.book.Now())
}

// hostsOf returns the hosts that a request may use: those it names, else that of the sandbox it forks, else those
// of the profile's placement that the ledger knows. listed says that the ledger was asked.
func (m *Manager) hostsOf(ctx context.Context, asked *plan.Asked, source *ledger.Sandbox) (out []extensions.Host, listed bool, err error) {
	for _, ref := range asked.Request.Hosts {
		var h extensions.Host
		if extensions.IsHostRef(ref) {
			h, err = extensions.ParseHostRef(ref)
		} else {
			listed = true
			h, err = m.LookupHost(ctx, ref)
		}
		if err == nil {
			err = m.CheckHost(h)
		}
		if err == nil && slices.ContainsFunc(out, named(h.Name)) {
			err = extensions.Invalid("hosts: %q is listed twice", "list each host once", h.Name)
		}
		if err != nil {
			return nil, listed, err
		}
		out = append(out, h)
	}
	if len(out) > 0 {
		return out, listed, nil
	}
	if source != nil && source.HostRef != "" {
		h, err := extensions.ParseHostRef(source.HostRef)
		if err == nil {
			err = m.CheckHost(h)
		}
		return []extensions.Host{h}, true, err
	}
	for _, name := range slices.Concat(asked.Resolved.Placement.Prefer, asked.Resolved.Placement.Fallback) {
		listed = true
		h, err := m.LookupHost(ctx, name)
		switch {
		case absent(err) || slices.ContainsFunc(out, named(h.Name)):
			continue // routing reports a missing host
		case err != nil:
			return nil, listed, err
		}
		out = append(out, h)
	}
	return out, listed, nil
}

func named(name string) func(extensions.Host) bool {
	return func(h extensions.Host) bool { return h.Name == name }
}

// occupied counts what takes room now. It leaves out what the request replaces: the life before a
// recreate, and the holder of its name. It returns nil if the ledger cannot be read; the transaction that
// takes the room decides anyway, and reports what is wrong with the ledger.
func (m *Manager) occupied(ctx context.Context, req plan.Request, again extensions.ID) *plan.Occupancy {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil
	}
	rows, err := l.Occupancy(ctx, m.account)
	if err != nil {
		return nil
	}
	o := &plan.Occupancy{}
	for _, r := range rows {
		o.Add(r.Extension, r.Host, r.Live)
	}
	var row ledger.Sandbox
	if again != "" {
		row, err = l.Get(ctx, again)
	} else {
		row, err = l.ByName(ctx, m.account, req.Name)
	}
	if err == nil && row.State != lifecycle.Destroyed && row.State != lifecycle.Requested && row.ExpiresAt.After(m.book.Now()) {
		o.Leaves(row.Extension, row.Host)
	}
	return o
}

// granted reads the balances if a request does not say who pays.
func (m *Manager) granted(ctx context.Context, billing, account string) map[string]bool {
	if billing != "" {
		return nil
	}
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil // the transaction that begins reports what is wrong with the ledger
	}
	balances, err := l.Balances(ctx, ledger.StreamOf(account))
	if err != nil {
		return nil
	}
	return plan.GrantedIn(balances)
}

// historySamples is the number of past lives from which a quote takes the median.
const historySamples = 200

// past returns how long lives of the profile ran at each binding, or anywhere if a binding has none yet. A
// notice reports an unreadable ledger.
func (m *Manager) past(ctx context.Context, profileID string) map[string]*meter.History {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil
	}
	at := func(binding string) *meter.History {
		lives, err := l.Lifetimes(ctx, m.account, profileID, binding, historySamples)
		if err != nil {
			return nil
		}
		return plan.HistoryOf(lives)
	}
	anywhere := at("")
	out := map[string]*meter.History{}
	for _, b := range m.catalog.Bindings {
		if out[b.ID] = at(b.ID); out[b.ID] == nil {
			out[b.ID] = anywhere
		}
	}
	return out
}

// here is the machine that runs this program.
var here = plan.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH}

// narrowed returns what a candidate's extension says about its host's arguments; nil if its hosts do not
// differ. It dials nothing.
func (m *Manager) narrowed(c *route.Candidate) *plan.Narrowed {
	n, ok := m.places.Narrower(m.catalog.Bindings[c.Index])
	if !ok {
		return nil
	}
	left, lost := n.OnHost(plan.OnMachine(c, here), *c.Host)
	return &plan.Narrowed{Capabilities: left, Lost: lost}
}

// sighted records how a recent call went, so that the place need not be asked again.
func (m *Manager) sighted(seen plan.Seen, at place.Address) plan.Seen {
	s, known := m.places.Sighted(at)
	if !known {
		return seen
	}
	seen.Asked, seen.Silence = true, nil
	if s.Err != nil {
		seen.Silence = &plan.Silence{At: s.At, Err: s.Err}
	}
	return seen
}

// latencySamples is the number of past sandboxes from which the median is taken.
const latencySamples = 20

// latency returns how long a place takes from create to ready: the measured median, else dated, the
// catalog's figure.
func (m *Manager) latency(ctx context.Context, c *route.Candidate, dated route.Latency) route.Latency {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return dated
	}
	past, err := l.ReadyTimes(ctx, m.account, c.Binding, c.HostName(), latencySamples)
	if err != nil {
		return dated
	}
	var took []time.Duration
	for _, r := range past {
		var recorded plan.Route
		if json.Unmarshal(r.Route, &recorded) == nil && len(recorded.Attempts) == 1 { // else part of it was spent elsewhere
			took = append(took, r.Took)
		}
	}
	if len(took) == 0 {
		return dated
	}
	return route.Latency{CreateToReady: plan.Percentile(took, 50), Samples: len(took)}
}

func (m *Manager) placeOfCandidate(c *route.Candidate) place.Address {
	at := place.Address{Binding: c.Binding, Account: m.account}
	if c.Host != nil {
		at.Host = c.Host.Ref()
	}
	return at
}
