package sqlstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// subject is what an intent is about: a sandbox or a snapshot.
type subject struct {
	id         string
	account    string
	generation int64
}

func (t *tx) openIntent(id string) (*ledger.Intent, error) {
	rows, err := selectAll(t.ctx, t.store, t.sql, "intents", intentRow, "WHERE open_key = ?"+t.dialect.forUpdate, id)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// intents ends the open intent and begins another, as requested, and raises the fence.
func (t *tx) intents(s subject, key string, fence *int64, open *ledger.Intent, finish *ledger.FinishIntent,
	begin *ledger.OpenIntent) (finished, opened *chain.IntentFact, err error) {
	if finish != nil {
		if !slices.Contains([]ledger.IntentState{ledger.Confirmed, ledger.Failed, ledger.Abandoned, ledger.Adopted}, finish.Outcome) {
			return nil, nil, fault.New(extensions.KindInvalid, s.id, fmt.Errorf("an intent cannot end as %q", finish.Outcome))
		}
		if open == nil {
			e := fault.New(extensions.KindConflict, s.id, &ledger.Stale{Why: "its operation was finished already"})
			return nil, nil, e.WithRemedy("read its current state and try again")
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
		if finished, err = t.finish(*open, ledger.Abandoned, "taken over by "+string(begin.Kind)); err != nil {
			return nil, nil, err
		}
	}
	*fence++
	intent := ledger.Intent{Key: begin.Key, Kind: begin.Kind, Subject: s.id, Account: s.account, State: ledger.Dispatched,
		Holder: begin.Holder,
		Fence:  *fence, Generation: s.generation, Detail: begin.Detail, StartedAt: t.now, Metered: begin.Metered}
	if intent.Key == "" {
		intent.Key = key
	}
	if err := errors.Join(plain("holder", string(intent.Holder)), plain("key", intent.Key)); err != nil {
		return nil, nil, err
	}
	if err := t.insert("ledger.intent.open", "intents", intentRow(&intent)); err != nil {
		return nil, nil, t.clash(err, intent.Key)
	}
	return finished, intentTold(intent), nil
}

func (t *tx) finish(i ledger.Intent, outcome ledger.IntentState, reason string) (*chain.IntentFact, error) {
	i.State, i.Reason, i.FinishedAt = outcome, reason, t.now
	err := t.update("ledger.intent.finish", "intents", intentRow(&i), "op_key = ? AND state = ?", i.Key, string(ledger.Dispatched))
	return intentTold(i), err
}

func (t *tx) mayTakeOver(open ledger.Intent, begin ledger.OpenIntent) error {
	busy := fault.New(extensions.KindConflict, open.Subject, &ledger.Busy{Intent: open})
	if open.Holder == begin.Holder {
		if begin.Supersede {
			return nil
		}
		return busy.WithRemedy("wait for it to finish")
	}
	alive, err := t.holders.alive(t.ctx, open.Holder)
	if err != nil {
		return fault.New(extensions.KindUnavailable, open.Subject, err)
	}
	if alive {
		return busy.WithRemedy("wait for the other run to finish, or end it")
	}
	return nil
}

// intentTold returns what an event says about an intent.
func intentTold(i ledger.Intent) *chain.IntentFact {
	return &chain.IntentFact{Key: i.Key, Kind: string(i.Kind), State: string(i.State), Fence: i.Fence, Reason: i.Reason}
}
