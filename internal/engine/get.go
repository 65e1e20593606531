package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Get observes one sandbox. Errors by Kind: NotFound = proved absent (the
// error says since when and why, as far as known); Conflict = taken over by
// another owner; Unreachable = could not ask. An expired sandbox is no error.
// Get writes nothing, and a ledger that knows nothing of it is no obstacle.
func (e *Engine) Get(ctx context.Context, rec Receipt) (Sandbox, error) {
	e.heardOf(rec)
	if _, err := extensions.ParseID(string(rec.ID)); err != nil {
		return Sandbox{}, err
	}
	l, row, known := e.rowFor(ctx, rec)
	if !known && row.Extension == "" {
		row, _ = e.whereabouts(ctx, row)
	}
	s := e.view(row)
	switch {
	case known && rec.Ledger == "":
		s.Receipt = e.fullReceipt(ctx, l, row)
	case known:
		s.Receipt = keepReceipt(s.Receipt, rec)
	default: // the receipt may tell more than the fields a row has
		s.Receipt, s.Receipt.Extension, s.Receipt.Handle = rec, row.Extension, row.Handle.Encode()
	}
	if known && rec.Generation > 0 && row.Generation > rec.Generation {
		return s, e.fenced(row)
	}
	if row.State == lifecycle.Destroyed {
		return e.getDestroyed(s, row)
	}
	if row.Extension == "" {
		s.State = string(lifecycle.Failed)
		s.Reason = "its creation did not get as far as a place"
		return s, nil
	}
	b, err := e.places.Open(ctx, placeOf(row))
	if err != nil {
		return s, err
	}
	h := row.Handle
	if h.IsZero() {
		if h, err = b.Find(ctx, row.ID); err != nil {
			if absent(err) {
				return e.getAbsent(s, row, extensions.Observation{})
			}
			return s, err
		}
		s.Handle, s.Receipt.Handle = h.Encode(), h.Encode()
	}
	obs, err := b.Observe(ctx, h)
	if err != nil {
		return s, err
	}
	if obs.Generation > 0 && rec.Generation > 0 && obs.Generation > rec.Generation {
		return s, e.fenced(row)
	}
	return e.merge(s, row, obs)
}

func (e *Engine) fenced(row ledger.Sandbox) error {
	err := extensions.Errorf(extensions.KindConflict, "sandbox %s (%s) was taken over by another owner", row.ID, row.Name)
	err.ID = row.ID
	return err.WithRemedy("nothing is left to do here: it now belongs to the run that adopted it")
}

// rowFor takes the ledger's row, else the receipt's word.
func (e *Engine) rowFor(ctx context.Context, rec Receipt) (ledger.Ledger, ledger.Sandbox, bool) {
	if l, err := e.reader(ctx); err == nil {
		if row, err := l.Get(ctx, rec.ID); err == nil {
			return l, row, true
		}
	}
	return nil, rowOf(rec), false
}

// getDestroyed tells an end that was due from one that was not.
func (e *Engine) getDestroyed(s Sandbox, row ledger.Sandbox) (Sandbox, error) {
	if row.EndReason == "expired" {
		s.State, s.Reason = string(lifecycle.Expired), "its ttl ended at "+row.EndedAt.UTC().Format(time.RFC3339)
		return s, nil
	}
	err := extensions.Errorf(extensions.KindNotFound, "sandbox %s (%s) was ended at %s: %s", row.ID, row.Name, row.EndedAt.UTC().Format(time.RFC3339), row.EndReason)
	err.ID = row.ID
	return s, err
}

// getAbsent tells expired from lost. What a run began to end, and could not
// close, is neither: whoever owns it still has to end it, which settles it.
func (e *Engine) getAbsent(s Sandbox, row ledger.Sandbox, obs extensions.Observation) (Sandbox, error) {
	end := e.endOf(row, obs.EndedAt)
	if !row.ExpiresAt.IsZero() && !row.ExpiresAt.After(e.now()) {
		s.State, s.EndedAt, s.Reason = string(lifecycle.Expired), end.at, "its ttl ended at "+row.ExpiresAt.UTC().Format(time.RFC3339)
		return s, nil
	}
	if row.State == lifecycle.Destroying || row.State == lifecycle.Failed {
		return s, nil
	}
	last := ""
	if why := cmp.Or(obs.Reason, row.Reason); why != "" {
		last = "; last known: " + why
	}
	err := extensions.Errorf(extensions.KindNotFound, "sandbox %s (%s) is gone from %s before its end at %s: lost%s",
		row.ID, row.Name, candidateName(row), row.ExpiresAt.UTC().Format(time.RFC3339), last)
	err.ID = row.ID
	return s, err.WithRemedy("make one of its name, or run `sandboxer sweep`: either settles what it cost and frees what is set aside for it")
}

// merge lays an observation over what is recorded.
func (e *Engine) merge(s Sandbox, row ledger.Sandbox, obs extensions.Observation) (Sandbox, error) {
	s.Reach = obs.Reachability
	switch obs.Phase {
	case extensions.PhaseAbsent:
		return e.getAbsent(s, row, obs)
	case extensions.PhaseExpired:
		s.State, s.EndedAt, s.Reason = string(lifecycle.Expired), e.endOf(row, obs.EndedAt).at, obs.Reason
	case extensions.PhaseFailed:
		s.State, s.EndedAt, s.Reason = string(lifecycle.Failed), obs.EndedAt, obs.Reason
	case extensions.PhaseProvisioning:
		s.State = string(lifecycle.Provisioning)
	case extensions.PhasePaused:
		s.Mode = string(ledger.Paused)
	case extensions.PhaseReady:
		s.Mode = string(ledger.Running)
		if obs.Reason != "" {
			s.Notices = append(s.Notices, Notice{Summary: fmt.Sprintf("Not all is well in sandbox %s (%s)", row.Name, row.ID), Detail: obs.Reason})
		}
	}
	if s.Mode == "" {
		s.Mode = string(ledger.Running)
	}
	overdue := lifecycle.Overdue(e.now(), row.ExpiresAt)
	if overdue && (s.State == string(lifecycle.Ready) || s.State == string(lifecycle.Provisioning)) {
		s.State, s.Reason = string(lifecycle.Expired), "its ttl ended at "+row.ExpiresAt.UTC().Format(time.RFC3339)+"; what is left ends at the next contact"
	}
	return s, nil
}

// Lookup finds a sandbox in the ledger by id, or by account and name, with
// the request it was made from. It writes nothing and does not dial.
func (e *Engine) Lookup(ctx context.Context, id ID, account, name string) (Sandbox, error) {
	if account == "" {
		account = e.account
	}
	if id != "" {
		if _, err := extensions.ParseID(string(id)); err != nil {
			return Sandbox{}, err
		}
	}
	l, err := e.reader(ctx)
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
			WithRemedy("`sandboxer sandbox list` shows what it knows; check the provider's ledger, state_dir and account")
	case err != nil:
		return Sandbox{}, err
	}
	return e.sealed(ctx, l, row), nil
}

// List reads the account's sandboxes from the ledger, oldest first; all
// includes destroyed ones.
func (e *Engine) List(ctx context.Context, all bool) ([]Sandbox, error) {
	l, err := e.reader(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := l.List(ctx, ledger.Filter{Account: e.account, Live: !all})
	if err != nil {
		return nil, err
	}
	out := make([]Sandbox, 0, len(rows))
	for _, r := range rows {
		s := e.view(r)
		if lifecycle.Usable(r.State) && lifecycle.Overdue(e.now(), r.ExpiresAt) {
			s.State = string(lifecycle.Expired)
		}
		out = append(out, s)
	}
	return out, nil
}
