package life

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Get observes one sandbox. Errors by Kind: NotFound: proved absent (the error says since when and why, if
// known); Conflict: another owner took over; Unreachable: the place could not be asked. An expired sandbox
// is not an error. Get writes nothing and works without a ledger row.
func (m *Manager) Get(ctx context.Context, rec plan.Receipt) (Sandbox, error) {
	s, err := m.get(ctx, rec)
	if l, row, known := m.rowFor(ctx, rec); err == nil && known {
		m.withLeases(ctx, l, row, &s, rec.Lease)
	}
	s.Mode = shownMode(s.State, s.Mode)
	return s, err
}

func (m *Manager) get(ctx context.Context, rec plan.Receipt) (Sandbox, error) {
	m.heardOf(rec)
	if _, err := extensions.ParseID(string(rec.ID)); err != nil {
		return Sandbox{}, err
	}
	l, row, known := m.rowFor(ctx, rec)
	if !known && row.Extension == "" {
		row, _ = m.whereabouts(ctx, row)
	}
	s := m.view(row)
	switch {
	case known && rec.Ledger == "":
		s.Receipt = m.fullReceipt(ctx, l, row)
	case known:
		s.Receipt = keepReceipt(s.Receipt, rec)
	default: // the receipt may hold more than a row has fields for
		s.Receipt, s.Receipt.Extension, s.Receipt.Handle = rec, row.Extension, row.Handle.Encode()
	}
	if known {
		if err := m.notOurs(ctx, l, row, rec); err != nil {
			return s, err
		}
	}
	if row.State == lifecycle.Destroyed {
		return m.getDestroyed(s, row)
	}
	if known && m.leftBySnapshot(ctx, l, row) {
		unsettledView(&s)
		return s, nil
	}
	if known && row.State == lifecycle.Provisioning && since(row, rec) {
		return m.getRemaking(ctx, l, s)
	}
	if row.Extension == "" {
		s.State = string(lifecycle.Failed)
		s.Reason = "its creation never reached a place"
		return s, nil
	}
	b, err := m.places.Open(ctx, placeOf(row))
	if err != nil {
		return s, err
	}
	h := row.Handle
	if h.IsZero() {
		if h, err = b.Find(ctx, row.ID); err == nil {
			s.Handle, s.Receipt.Handle = h.Encode(), h.Encode()
		}
	}
	var obs extensions.Observation
	if err == nil {
		obs, err = b.Observe(ctx, h)
	}
	switch {
	case absent(err) || m.endedElsewhere(row, err):
		return m.getAbsent(s, row, extensions.Observation{})
	case err != nil:
		return s, err
	}
	if rec.Generation > 0 && obs.Generation > max(rec.Generation, row.Generation) {
		return s, m.fenced(row)
	}
	return m.merge(s, row, obs)
}

// rowFor returns the ledger's row, else a row made from the receipt.
func (m *Manager) rowFor(ctx context.Context, rec plan.Receipt) (*ledger.Ledger, ledger.Sandbox, bool) {
	if l, err := m.book.Reader(ctx); err == nil {
		if row, err := l.Get(ctx, rec.ID); err == nil {
			return l, row, true
		}
	}
	return nil, rowOf(rec), false
}

// getDestroyed distinguishes an end that was due from one that was not.
func (m *Manager) getDestroyed(s Sandbox, row ledger.Sandbox) (Sandbox, error) {
	due := map[string]string{"expired": "its ttl ended", "terminated": "its entrypoint ended",
		book.Idle: "its idle time (ttl.idle_reap) ended", bySnapshot: "a snapshot ended it"}
	if by := due[row.EndReason]; by != "" {
		s.State, s.Reason = string(lifecycle.Expired), by+" at "+row.EndedAt.UTC().Format(time.RFC3339)
		return s, nil
	}
	err := extensions.Errorf(extensions.KindNotFound, "sandbox %s (%s) ended at %s: %s", row.ID, row.Name,
		row.EndedAt.UTC().Format(time.RFC3339), row.EndReason)
	err.ID = row.ID
	return s, err
}

// getAbsent distinguishes expired from lost. A sandbox whose end was begun but not closed is neither: its
// owner still has to end it, which settles it.
func (m *Manager) getAbsent(s Sandbox, row ledger.Sandbox, obs extensions.Observation) (Sandbox, error) {
	end := m.endingOf(row, obs.EndedAt)
	if !row.ExpiresAt.IsZero() && !row.ExpiresAt.After(m.book.Now()) {
		s.State, s.EndedAt, s.Reason = string(lifecycle.Expired), end.At, "its ttl ended at "+row.ExpiresAt.UTC().Format(time.RFC3339)
		return s, nil
	}
	if row.State == lifecycle.Destroying || row.State == lifecycle.Failed {
		return s, nil
	}
	last := ""
	if why := cmp.Or(obs.Reason, row.Reason); why != "" {
		last = "; last known: " + why
	}
	err := extensions.Errorf(extensions.KindNotFound, "sandbox %s (%s) disappeared from %s before its deadline %s%s",
		row.ID, row.Name, candidateName(row), row.ExpiresAt.UTC().Format(time.RFC3339), last)
	err.ID = row.ID
	return s, err.WithRemedy("create one with the same name, or run `sandboxer sweep`: either settles its cost and releases its hold")
}

// merge lays an observation over the recorded values.
func (m *Manager) merge(s Sandbox, row ledger.Sandbox, obs extensions.Observation) (Sandbox, error) {
	s.Reach = obs.Reachability
	switch obs.Phase {
	case extensions.PhaseAbsent:
		return m.getAbsent(s, row, obs)
	case extensions.PhaseExpired, extensions.PhaseTerminated:
		s.State, s.EndedAt, s.Reason = string(lifecycle.Expired), m.endingOf(row, obs.EndedAt).At, obs.Reason
	case extensions.PhaseFailed:
		s.State, s.EndedAt, s.Reason = string(lifecycle.Failed), obs.EndedAt, obs.Reason
	case extensions.PhaseProvisioning:
		s.State = string(lifecycle.Provisioning)
	case extensions.PhaseReady, extensions.PhasePaused:
		if obs.Reason != "" {
			s.Notices = append(s.Notices, notice.Notice{Summary: fmt.Sprintf("Sandbox %s (%s) has a problem", row.Name, row.ID), Detail: obs.Reason})
		}
	}
	s.IdleSince = obs.IdleSince
	if mode := modeOf(obs); mode != "" {
		s.Mode, s.Expiry = string(mode), m.expiry(row.Extension, mode)
	}
	overdue := lifecycle.Overdue(m.book.Now(), row.ExpiresAt)
	if overdue && (s.State == string(lifecycle.Ready) || s.State == string(lifecycle.Provisioning)) {
		s.State, s.Reason = string(lifecycle.Expired), "its ttl ended at "+row.ExpiresAt.UTC().Format(time.RFC3339)+"; the next contact "+
			"ends the rest"
	}
	return s, nil
}

// Lookup finds a sandbox in the ledger by id, or by account and name, with the request it was made from.
// It writes nothing and dials nothing.
func (m *Manager) Lookup(ctx context.Context, id extensions.ID, account, name string) (Sandbox, error) {
	if account == "" {
		account = m.account
	}
	if id != "" {
		if _, err := extensions.ParseID(string(id)); err != nil {
			return Sandbox{}, err
		}
	}
	l, err := m.book.Reader(ctx)
	if err != nil {
		return Sandbox{}, err
	}
	var row ledger.Sandbox
	what := fmt.Sprintf("sandbox %s", id)
	if id != "" {
		row, err = l.Get(ctx, id)
	} else {
		row, err = l.ByName(ctx, account, name)
		what = fmt.Sprintf("a live sandbox named %q in account %s", extensions.Clean(name, 80), account)
	}
	switch {
	case absent(err):
		return Sandbox{}, extensions.Errorf(extensions.KindNotFound, "the ledger %s does not know %s", l.URL(), what).
			WithRemedy("`sandboxer sandbox list` shows its sandboxes; check the provider's ledger, state_dir and account")
	case err != nil:
		return Sandbox{}, err
	}
	s := m.sealed(ctx, l, row)
	m.withLeases(ctx, l, row, &s, "")
	return s, nil
}

// List reads the account's sandboxes from the ledger, oldest first; all includes destroyed ones.
func (m *Manager) List(ctx context.Context, all bool) ([]Sandbox, error) {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := l.List(ctx, ledger.Filter{Account: m.account, Live: !all})
	if err != nil {
		return nil, err
	}
	out := make([]Sandbox, 0, len(rows))
	for _, r := range rows {
		s := m.view(r)
		switch {
		case lifecycle.Usable(r.State) && lifecycle.Overdue(m.book.Now(), r.ExpiresAt):
			s.State, s.Mode = string(lifecycle.Expired), ""
		case m.leftBySnapshot(ctx, l, r):
			unsettledView(&s)
		}
		m.withLeases(ctx, l, r, &s, "")
		out = append(out, s)
	}
	return out, nil
}
