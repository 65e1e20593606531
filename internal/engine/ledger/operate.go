package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// subject is what intents are about: a sandbox or a snapshot.
type subject struct {
	id         string
	account    string
	generation int64
}

func (t *tx) openIntent(id string) (*Intent, error) {
	rows, err := selectAll(t.ctx, t.store, t.sql, "intents", (*Intent).fields, "WHERE open_key = ?"+t.dialect.forUpdate, id)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// intents ends the open intent and begins another, as asked, raising the fence.
func (t *tx) intents(s subject, key string, fence *int64, open *Intent, finish *FinishIntent, begin *OpenIntent) (finished, opened *intentFact, err error) {
	if finish != nil {
		if !slices.Contains([]IntentState{Confirmed, Failed, Abandoned, Adopted}, finish.Outcome) {
			return nil, nil, failure(extensions.KindInvalid, s.id, fmt.Errorf("an intent cannot end as %q", finish.Outcome))
		}
		if open == nil {
			e := failure(extensions.KindConflict, s.id, &Stale{Why: "its operation was finished already"})
			return nil, nil, e.WithRemedy("look again and decide anew")
		}
		if finished, err = t.finish(*open, finish.Outcome, finish.Reason); err != nil {
			return nil, nil, err
		}
		open = nil
	}
	if begin == nil {
		return finished, nil, nil
	}
	if open != nil {
		if err := t.mayTakeOver(*open, *begin); err != nil {
			return nil, nil, err
		}
		if finished, err = t.finish(*open, Abandoned, "taken over by "+string(begin.Kind)); err != nil {
			return nil, nil, err
		}
	}
	*fence++
	intent := Intent{Key: begin.Key, Kind: begin.Kind, Subject: s.id, Account: s.account, State: Dispatched, Holder: begin.Holder,
		Fence: *fence, Generation: s.generation, Detail: begin.Detail, StartedAt: t.now, Metered: begin.Metered}
	if intent.Key == "" {
		intent.Key = key
	}
	if err := errors.Join(plain("holder", string(intent.Holder)), plain("key", intent.Key)); err != nil {
		return nil, nil, err
	}
	if err := t.insert("ledger.intent.open", "intents", intent.fields()); err != nil {
		return nil, nil, t.clash(err, intent.Key)
	}
	return finished, intent.fact(), nil
}

func (t *tx) finish(i Intent, outcome IntentState, reason string) (*intentFact, error) {
	i.State, i.Reason, i.FinishedAt = outcome, reason, t.now
	err := t.update("ledger.intent.finish", "intents", i.fields(), "op_key = ? AND state = ?", i.Key, string(Dispatched))
	return i.fact(), err
}

func (t *tx) mayTakeOver(open Intent, begin OpenIntent) error {
	busy := failure(extensions.KindConflict, open.Subject, &Busy{Intent: open})
	if open.Holder == begin.Holder {
		if begin.Supersede {
			return nil
		}
		return busy.WithRemedy("wait for it to finish")
	}
	alive, err := t.holders.alive(t.ctx, open.Holder)
	if err != nil {
		return failure(extensions.KindUnavailable, open.Subject, err)
	}
	if alive {
		return busy.WithRemedy("wait for the other run to finish, or end it")
	}
	return nil
}
