package ledger

import (
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Ceiling bounds how fast sandboxes are begun or money is spent, so that a
// loop ends. It is counted in the transaction that begins, so that runs at
// once cannot pass it together.
type Ceiling struct {
	Source string // who says so, for messages: "policy.acme"
	// Scope is whose sandboxes count: "org/workspace", or all of an "org".
	Scope string
	// Currency tells what Max counts: nano-units of it that were spent in the
	// last Per or are set aside now, places of the user's own apart; "" = the
	// sandboxes that were begun or made anew in the last Per, whatever became
	// of them.
	Currency string
	Max      int64
	Per      time.Duration
	Metered  bool // count only sandboxes that somebody sends a bill for
}

// TooFast says which ceiling refuses, and when it will not. It arrives as
// KindExhausted with RetryAfter.
type TooFast struct {
	Ceiling
	Count int64 // what counts so far: sandboxes, or nano-units
	Need  int64 // nano-units; 0 for sandboxes
	// Next is when there is room, if nothing else is begun; zero where that
	// takes an end of what lives, or a higher ceiling.
	Next time.Time
	At   time.Time // when it was refused
}

func (e *TooFast) Error() string {
	text := fmt.Sprintf("%d sandboxes were begun for %s in the last %s (limit: %s of %s)", e.Count, e.Scope, shortDuration(e.Per),
		fmt.Sprintf("%d per %s", e.Max, shortDuration(e.Per)), e.Source)
	if e.Currency != "" {
		text = fmt.Sprintf("needs %s %s, and %s has spent or set aside %s in the last %s (limit: %s per %s of %s)", meter.Amount(e.Need), e.Currency,
			e.Scope, meter.Amount(e.Count), shortDuration(e.Per), meter.Amount(e.Max), shortDuration(e.Per), e.Source)
	}
	if e.Next.IsZero() {
		return text
	}
	return text + "; the next is possible at " + e.Next.UTC().Format(time.RFC3339) + ", in " + shortDuration(e.wait())
}

// wait is rounded up to seconds, at least one.
func (e *TooFast) wait() time.Duration {
	return max(time.Second, (e.Next.Sub(e.At) + time.Second - 1).Truncate(time.Second))
}

func (e *TooFast) refusal(id extensions.ID) error {
	out := failure(extensions.KindExhausted, string(id), e)
	if e.Next.IsZero() {
		return out.WithRemedy("end what is not needed, or have the ceiling raised")
	}
	out.RetryAfter = e.wait()
	return out.WithRemedy("wait, or have the ceiling raised; if a loop makes these, end it")
}

func (c Ceiling) validate() error {
	if c.Max < 0 || c.Per <= 0 || StreamOf(c.Scope) == "" {
		return failuref(extensions.KindInvalid, "the ceiling of %s is negative, has no time or no scope", c.Source)
	}
	return nil
}

// ceilings checks all of them; begins says that one more sandbox is begun.
// The caller has the org's lock.
func (t *tx) ceilings(row Sandbox, all []Ceiling, r *Reserve, begins bool) error {
	for _, c := range all {
		if err := c.validate(); err != nil {
			return err
		}
		var refused *TooFast
		var err error
		switch {
		case c.Currency == "" && begins:
			refused, err = t.begunLately(c)
		case c.Currency != "" && r != nil && !r.Unknown && r.Currency == c.Currency && r.Memo != AccountInfra:
			refused, err = t.spentLately(row, c, *r)
		}
		if err != nil {
			return err
		}
		if refused != nil {
			refused.Ceiling, refused.At = c, t.now
			return refused.refusal(row.ID)
		}
	}
	return nil
}

// within selects the accounts of a scope by the column.
func (c Ceiling) within(w *where, column string) {
	if c.Scope == StreamOf(c.Scope) {
		prefix := c.Scope + "/"
		w.and("substr("+column+", 1, ?) = ?", int64(len(prefix)), prefix)
		return
	}
	w.and(column+" = ?", c.Scope)
}

// begunLately finds no room where the last Max of them are all in the window.
func (t *tx) begunLately(c Ceiling) (*TooFast, error) {
	var w where
	c.within(&w, "account")
	w.and("kind IN ('create', 'recreate')")
	w.and("started_at > ?", toMicros(t.now.Add(-c.Per)))
	if c.Metered {
		w.and("metered = 1")
	}
	var began []int64
	err := query(t.ctx, t.store, t.sql, "SELECT started_at FROM intents "+w.tail("ORDER BY started_at DESC"), w.args, func(scan func(...any) error) error {
		var at int64
		err := scan(&at)
		began = append(began, at)
		return err
	})
	n := int64(len(began))
	if err != nil || n < c.Max {
		return nil, err
	}
	e := &TooFast{Count: n}
	if c.Max > 0 {
		e.Next = fromMicros(began[c.Max-1]).Add(c.Per)
	}
	return e, nil
}

// spentLately adds up what meters that ended in the window were charged and
// what is set aside for what lives.
func (t *tx) spentLately(row Sandbox, c Ceiling, r Reserve) (*TooFast, error) {
	held, own, err := t.heldIn(c, row)
	if err != nil {
		return nil, err
	}
	need := r.Amount
	if r.Total {
		need = max(0, need-own)
	}
	ended, spent, err := t.endedLately(c)
	if err != nil || need == 0 || held+spent <= c.Max-need {
		return nil, err
	}
	e := &TooFast{Count: held + spent, Need: need}
	for _, m := range ended {
		if spent -= m.amount; held+spent <= c.Max-need {
			e.Next = m.at.Add(c.Per)
			break
		}
	}
	return e, nil
}

// heldIn sums up reservations of the scope, and those of the row among them.
func (t *tx) heldIn(c Ceiling, row Sandbox) (sum, own int64, err error) {
	org := StreamOf(c.Scope)
	var w where
	c.within(&w, "s.account")
	w.and("s.state <> 'destroyed'")
	w.and("x.kind = 'pending'")
	w.and("x.debit IN (?, ?)", accountID(org, AccountWallet, c.Currency), accountID(org, AccountBYOK, c.Currency))
	w.and("NOT EXISTS (SELECT 1 FROM transfers r WHERE r.pending_id = x.id)")
	err = query(t.ctx, t.store, t.sql, "SELECT x.subject, x.amount FROM sandboxes s JOIN transfers x ON x.subject = s.id "+w.tail(""), w.args, func(scan func(...any) error) error {
		var id string
		var amount int64
		err := scan(&id, &amount)
		if id == string(row.ID) {
			own += amount
		}
		sum += amount
		return err
	})
	return sum, own, err
}

type endedMeter struct {
	at     time.Time
	amount int64
}

// endedLately lists what meters were charged that ended in the window, the
// oldest first.
func (t *tx) endedLately(c Ceiling) (list []endedMeter, sum int64, err error) {
	var w where
	c.within(&w, "s.account")
	w.and("m.closed_at > ?", toMicros(t.now.Add(-c.Per)))
	w.and("c.currency = ?", c.Currency)
	w.and("c.memo NOT LIKE 'infra_memo%'")
	stmt := "SELECT m.closed_at, CAST(sum(c.amount) AS BIGINT) FROM meters m JOIN charges c ON c.meter_id = m.id JOIN sandboxes s ON s.id = m.sandbox_id "
	err = query(t.ctx, t.store, t.sql, stmt+w.tail("GROUP BY m.id, m.closed_at ORDER BY m.closed_at"), w.args, func(scan func(...any) error) error {
		var at int64
		var m endedMeter
		err := scan(&at, &m.amount)
		m.at = fromMicros(at)
		list, sum = append(list, m), sum+m.amount
		return err
	})
	return list, sum, err
}
