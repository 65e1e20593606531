package life

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// LeaseView is one of the leases that several resources have on a sandbox.
type LeaseView struct {
	ID      string
	Request plan.Request // what it asked for
	Since   time.Time
	Until   time.Time // when its lease lapses
}

// shared reports whether several may hold the sandbox of a row.
func shared(row ledger.Sandbox) bool { return plan.Shared(specOf(row).Scope) }

// newLease returns the lease of a request on a sandbox that several hold: its ttl counts from now, and ends at the
// latest with the sandbox's own maximum.
func (m *Manager) newLease(d *plan.Decision, row ledger.Sandbox) (*ledger.Lease, error) {
	id, err := extensions.NewID(m.rand)
	if err != nil {
		return nil, err
	}
	now := m.book.Now().UTC().Truncate(time.Microsecond)
	if row.CreatedAt.After(now) || row.State == "" {
		now = row.CreatedAt
	}
	return &ledger.Lease{ID: strings.TrimPrefix(string(id), "sbx-"), Request: mustJSON(d.Request), CreatedAt: now,
		ExpiresAt: leaseEnd(row, now, d.TTL)}, nil
}

// leaseEnd returns when a lease of this length lapses.
func leaseEnd(row ledger.Sandbox, from time.Time, ttl time.Duration) time.Time {
	end := from.Add(ttl)
	if last := row.CreatedAt.Add(row.MaxTTL); row.MaxTTL > 0 && last.Before(end) {
		return last
	}
	return end
}

// leases returns the leases on a sandbox that count now, but for one.
func (m *Manager) leases(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, but string) ([]ledger.Lease, error) {
	if !shared(row) {
		return nil, nil
	}
	all, err := l.Leases(ctx, row.ID)
	now := m.book.Now()
	return slices.DeleteFunc(all, func(x ledger.Lease) bool { return x.ID == but || !x.Counts(now) }), err
}

// latestEnd returns when the last of some leases lapses.
func latestEnd(all []ledger.Lease) (end time.Time) {
	for _, x := range all {
		if x.ExpiresAt.After(end) {
			end = x.ExpiresAt
		}
	}
	return end
}

// checkJoin refuses, with KindConflict, to hold a live sandbox that is not what the request asks for.
func (m *Manager) checkJoin(d *plan.Asked, row ledger.Sandbox) error {
	refuse := func(field, what, remedy string) error {
		err := extensions.Errorf(extensions.KindConflict, "sandbox %s (%s) is held by others and %s", row.ID, row.Name, what)
		err.ID = row.ID
		return extensions.AtField(field, err.WithRemedy("%s", remedy))
	}
	switch {
	case !shared(row):
		return m.nameTaken(row)
	case d.SpecAt(row.Extension).Hash() != row.SpecHash:
		return refuse("share_key", "has another specification",
			"use the profile, inputs, env and secret names of its creation, use another share_key, or wait until the others release it")
	case d.Request.Extension != "" && d.Request.Extension != row.Extension:
		return refuse("extension", "runs at "+row.Extension, "remove extension, or use another share_key")
	case HostsMoved(plan.Receipt{Host: row.HostRef}, d.Request.Hosts):
		return refuse("hosts", "runs at the host "+row.Host, "allow that host, or use another share_key")
	}
	return nil
}

// planJoin refuses to hold a live sandbox of others that is not what the request asks for, as far as a plan can know.
func (m *Manager) planJoin(ctx context.Context, d *plan.Decision) error {
	if !plan.Shared(d.Resolved.Spec.Scope) {
		return nil
	}
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil //nolint:nilerr // the plan tells of it
	}
	row, err := l.ByName(ctx, m.account, d.Request.Name)
	if err != nil || !lifecycle.Usable(row.State) || lifecycle.Overdue(m.book.Now(), row.ExpiresAt) {
		return nil //nolint:nilerr // the apply makes it, or settles what is there first
	}
	if others, err := m.leases(ctx, l, row, d.Request.Former.Lease); err != nil || shared(row) && len(others) == 0 {
		return nil //nolint:nilerr // the one that is replaced ends it
	}
	return m.checkJoin(d.Asked, row)
}

// join adds a lease to a live sandbox that several hold, whose end becomes the latest lease's. Whoever created it
// pays for the longer life too, up to its max_cost.
func (m *Manager) join(ctx context.Context, l *ledger.Ledger, c *creation, row ledger.Sandbox, notify notice.Notify) (*Sandbox, error) {
	if err := m.checkJoin(c.decision.Asked, row); err != nil {
		return nil, err
	}
	lease, err := m.newLease(c.decision, row)
	if err != nil {
		return nil, err
	}
	told := fmt.Sprintf("Sandbox %s (%s) was already running. It ends with its latest lease, or once nobody holds it.", row.ID, row.Name)
	if want := lease.CreatedAt.Add(c.decision.TTL); lease.ExpiresAt.Before(want) {
		told += " This lease ends at " + lease.ExpiresAt.UTC().Format(time.RFC3339) + ", the maximum age that its profile allows."
	}
	if len(c.decision.Request.SecretNames) > 0 {
		told += " It keeps the secrets of its creation."
	}
	now, err := m.takeLease(ctx, l, row, *lease, notify)
	if err != nil && book.Settled(err) != nil && ctx.Err() == nil && lease.ExpiresAt.After(row.ExpiresAt) {
		lease.ExpiresAt = row.ExpiresAt
		told += fmt.Sprintf(" Its end stays at %s: %s.", row.ExpiresAt.UTC().Format(time.RFC3339), err)
		now, err = m.takeLease(ctx, l, row, *lease, notify)
	}
	if err != nil {
		return nil, err
	}
	s := m.sealed(ctx, l, now)
	s.Request, s.Receipt.Lease = c.decision.Request, lease.ID
	s.Notices = append(s.Notices, notice.Notice{Summary: "Joined a running sandbox", Detail: told})
	return &s, nil
}

// takeLease writes a lease and moves the end of its sandbox to that of the latest.
func (m *Manager) takeLease(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, lease ledger.Lease,
	notify notice.Notify,
) (ledger.Sandbox, error) {
	all, err := m.leases(ctx, l, row, lease.ID)
	if err != nil {
		return row, err
	}
	end := latestEnd(append(all, lease))
	if creator, err := requestOf(row); err == nil {
		if err := m.checkLaterCost(ctx, l, row, end.Sub(row.CreatedAt), row.MaxTTL, creator.MaxCost); err != nil {
			return row, leftAlone(row, err)
		}
	}
	return m.moveEnd(ctx, l, row, end, asSeen(row), ledger.Change{Lease: &lease, Event: ledger.NewNote("sandbox.held", map[string]any{
		"lease": lease.ID, "until": lease.ExpiresAt})}, notify)
}

// asSeen begins a change of leases, whose latest end was read with row: nobody may have changed them since.
func asSeen(row ledger.Sandbox) ledger.Change {
	return ledger.Change{Expect: ledger.Expect{Fence: row.Fence}}
}

// updateLease applies an in-place change of one holder: its lease gets another end. What it asked for otherwise is
// recorded with its lease, and the sandbox keeps the request that made it.
func (m *Manager) updateLease(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, rec plan.Receipt, req plan.Request,
	ttl time.Duration, notify notice.Notify) (Sandbox, error) {
	all, err := l.Leases(ctx, row.ID)
	if err != nil {
		return Sandbox{}, err
	}
	at := slices.IndexFunc(all, func(x ledger.Lease) bool { return x.ID == rec.Lease && x.Counts(m.book.Now()) })
	if at < 0 {
		return Sandbox{}, extensions.Errorf(extensions.KindConflict, "the lease on sandbox %s (%s) has ended", row.ID, row.Name).
			WithRemedy("replace the resource: that takes a new lease")
	}
	lease := all[at]
	if was, err := leaseRequest(lease); err != nil || was.TTL != req.TTL {
		lease.ExpiresAt = leaseEnd(row, lease.CreatedAt, ttl)
	}
	if !lease.Counts(m.book.Now()) {
		return Sandbox{}, m.checkNewEnd(plan.Receipt{CreatedAt: lease.CreatedAt}, ttl)
	}
	lease.Request = mustJSON(req)
	now, err := m.takeLease(ctx, l, row, lease, notify)
	for err != nil && book.Settled(err) == nil { // changed meanwhile
		if _, row, err = m.rowToChange(ctx, rec, notify); err != nil {
			return Sandbox{}, err
		}
		now, err = m.takeLease(ctx, l, row, lease, notify)
	}
	if err != nil {
		return Sandbox{}, err
	}
	s := m.sealed(ctx, l, now)
	s.Request, s.Receipt.Lease = req, rec.Lease
	return s, nil
}

// releaseLease ends one lease on a sandbox that others hold, whose end becomes that of the latest lease left. A place that
// cannot end it earlier keeps its end.
func (m *Manager) releaseLease(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, rec plan.Receipt, others []ledger.Lease,
	notify notice.Notify) (report DestroyReport, err error) {
	var now ledger.Sandbox
	var kept error
	for _, end := range []time.Time{latestEnd(others), row.ExpiresAt} {
		begun := asSeen(row)
		begun.Release, begun.Expect.Leased = []string{rec.Lease}, true
		begun.Event = ledger.NewNote("sandbox.released", map[string]any{"lease": rec.Lease})
		if now, err = m.moveEnd(ctx, l, row, end, begun, ledger.Change{}, notify); err == nil || book.Settled(err) == nil {
			break
		}
		if kept = err; now.ID != "" { // it is released
			err = nil
			break
		}
	}
	switch {
	case ledgerDown(ctx, err):
		return m.noteRelease(ctx, row, rec, err)
	case err != nil:
		return report, err
	}
	told := fmt.Sprintf("Sandbox %s (%s) is still held by %s, and ends at %s.", row.ID, row.Name, count(len(others), "other"),
		now.ExpiresAt.UTC().Format(time.RFC3339))
	if kept != nil {
		told += " It could not be moved to an earlier time: " + kept.Error() + "."
	}
	return DestroyReport{Released: true, Notices: []notice.Notice{{Summary: "Released, not ended", Detail: told}}}, nil
}

func count(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// noteRelease notes the release of a lease that no ledger here can record: the next run that can write the ledger
// releases it, and the sandbox ends at its deadline. down is why; nil if the ledger here does not know it.
func (m *Manager) noteRelease(ctx context.Context, row ledger.Sandbox, rec plan.Receipt, down error) (DestroyReport, error) {
	u := book.Noted{Ledger: m.book.URL(), LedgerID: rec.Ledger, ID: rec.ID, Generation: rec.Generation, EndedAt: m.book.Now(),
		Lease: rec.Lease}
	why := "the ledger could not be written"
	if down == nil {
		u.Ledger, why = "", "the ledger "+m.book.URL()+" does not know it"
	}
	if err := m.book.NoteEnd(ctx, u); err != nil {
		return DestroyReport{}, extensions.Errorf(extensions.KindUnavailable, "the lease on sandbox %s could not be released, because %s, "+
			"and the release could not be noted: %w", rec.ID, why, err).
			WithRemedy("make the ledger or the folder %s writable, and repeat the destroy", m.book.Folder())
	}
	return DestroyReport{Released: true, Notices: []notice.Notice{{Summary: "Released by a note, not ended",
		Detail: fmt.Sprintf("Others may hold sandbox %s (%s), and %s. A note in %s records the release; the next run with its ledger and "+
			"this state folder that changes something writes it to the ledger. Otherwise the sandbox ends at %s.", rec.ID, rec.Name, why,
			m.book.Folder(),
			row.ExpiresAt.UTC().Format(time.RFC3339))}}}, nil
}

func leaseRequest(x ledger.Lease) (req plan.Request, err error) {
	err = json.Unmarshal(x.Request, &req)
	return req, err
}

// leasedBy refuses to end, by hand, what several hold.
func (m *Manager) leasedBy(row ledger.Sandbox, all []ledger.Lease) error {
	err := extensions.Errorf(extensions.KindConflict, "sandbox %s (%s) is held by %s", row.ID, row.Name, count(len(all), "resource"))
	err.ID = row.ID
	return err.WithRemedy("destroy the resources that hold it (`sandboxer sandbox get %s` lists them), or end it for everybody with "+
		"--force", row.ID)
}

// destroyLeased releases a lease where others hold the sandbox too. done = false: the caller ends it, without the leases in
// drop.
func (m *Manager) destroyLeased(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, rec plan.Receipt,
	opts DestroyOptions) (report DestroyReport, drop []string, done bool, err error) {
	if !shared(row) || opts.All {
		return report, nil, false, nil
	}
	others, err := m.leases(ctx, l, row, rec.Lease)
	switch {
	case err != nil:
		return report, nil, true, err
	case rec.Lease == "" && len(others) > 1:
		return report, nil, true, m.leasedBy(row, others)
	case rec.Lease == "" && len(others) == 1:
		return report, []string{others[0].ID}, false, nil
	case len(others) == 0 || !lifecycle.Usable(row.State):
		return report, []string{rec.Lease}, false, nil
	}
	report, err = m.releaseLease(ctx, l, row, rec, others, opts.Notify)
	return report, nil, true, err
}

// leaseAgain returns the lease that a recreate renews: that of the receipt, else the latest; nil if several may not hold
// it. It is KindConflict while others hold it, as they would lose what is inside.
func (m *Manager) leaseAgain(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, own string) (*ledger.Lease, error) {
	if !shared(row) {
		return nil, nil
	}
	all, err := l.Leases(ctx, row.ID)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	mine := all[len(all)-1]
	if at := slices.IndexFunc(all, func(x ledger.Lease) bool { return x.ID == own }); at >= 0 {
		mine = all[at]
	}
	others, err := m.leases(ctx, l, row, mine.ID)
	if err == nil && len(others) > 0 {
		err = extensions.Errorf(extensions.KindConflict, "sandbox %s (%s) cannot be re-created: %s would lose what is inside", row.ID, row.Name,
			count(len(others), "other holder")).WithRemedy("wait until they release it (`sandboxer sandbox get %s` lists them)", row.ID)
	}
	return &mine, err
}

// withLeases shows who holds a sandbox, and whether the lease of a receipt still counts.
func (m *Manager) withLeases(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, s *Sandbox, lease string) {
	if !shared(row) || l == nil {
		return
	}
	all, err := m.leases(ctx, l, row, "")
	if err != nil {
		return
	}
	s.Leases, s.Receipt.Lease = nil, lease
	mine := false
	for _, x := range all {
		req, _ := leaseRequest(x) // shown as far as it can be read
		s.Leases = append(s.Leases, LeaseView{ID: x.ID, Request: req, Since: x.CreatedAt, Until: x.ExpiresAt})
		mine = mine || x.ID == lease
	}
	if lease != "" && !mine && s.State == string(lifecycle.Ready) {
		s.State, s.Reason = string(lifecycle.Expired), "its lease has ended"
	}
}
