package ledger

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Pace is what counts against a ceiling at a time.
type Pace struct {
	Ceiling
	Count int64 // what counts so far: sandboxes, or nano-units
	Need  int64 // nano-units that are to be added; 0 for sandboxes
	// Beside is counted for others that are only planned; nothing is recorded of
	// them, so a ledger leaves it 0.
	Beside int64
	// Next is when there is room, if nothing else is begun; zero where there is,
	// and where that takes an end of what lives, or a higher ceiling.
	Next time.Time
	At   time.Time // when it was counted
}

// Fits reports room for one more sandbox, or for what is needed.
func (p Pace) Fits() bool {
	if p.Currency == "" {
		return add(p.Count, p.Beside) < p.Max
	}
	return p.Need <= 0 || add(p.Count, p.Beside) <= p.Max-p.Need
}

// Adds is how much of what the ceiling counts one more makes: one sandbox, or
// what it needs.
func (p Pace) Adds() int64 {
	if p.Currency == "" {
		return 1
	}
	return max(0, p.Need)
}

// Paces implements Ledger.
func (s *store) Paces(ctx context.Context, ceilings []Ceiling, reserve *Reserve) ([]Pace, error) {
	out := make([]Pace, 0, len(ceilings))
	for _, c := range ceilings {
		need := int64(0)
		if c.Currency != "" {
			need = 1
			if reserve != nil {
				need = reserve.counts(c)
			}
		}
		p := Pace{Ceiling: c, Need: need, At: s.now()}
		err := c.validate()
		if err == nil && s.reader != nil {
			err = s.ask(ctx, func() (err error) {
				p, err = counter{ctx: ctx, store: s, sql: s.reader, now: s.now()}.pace(c, need, false, "")
				return err
			})
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// counter counts what ceilings bound, in a transaction or beside one.
type counter struct {
	ctx   context.Context
	store *store
	sql   queryer
	now   time.Time
}

// pace counts for a ceiling. With total, need is what the sandbox has to have
// in all, and what is set aside for it already is a part of it.
func (n counter) pace(c Ceiling, need int64, total bool, id extensions.ID) (Pace, error) {
	if err := c.validate(); err != nil {
		return Pace{}, err
	}
	p := Pace{Ceiling: c, Need: need, At: n.now}
	if c.Currency == "" {
		err := n.begun(&p)
		return p, err
	}
	held, own, err := n.held(c, id)
	if err != nil {
		return p, err
	}
	if total {
		p.Need = max(0, need-own)
	}
	err = n.spent(&p, held)
	return p, err
}

// within selects the accounts of a scope by the column.
func (c Ceiling) within(w *where, column string) {
	if c.Scope == StreamOf(c.Scope) {
		prefix := c.Scope + "/"
		w.and("substr("+column+", 1, ?) = ?", int64(utf8.RuneCountInString(prefix)), prefix)
		return
	}
	w.and(column+" = ?", c.Scope)
}

// begun finds no room where the last Max of them are all in the window.
func (n counter) begun(p *Pace) error {
	var w where
	p.within(&w, "account")
	w.and("kind IN ('create', 'recreate')")
	w.and("started_at > ?", toMicros(n.now.Add(-p.Per)))
	if p.Metered {
		w.and("metered = 1")
	}
	var began []int64
	err := query(n.ctx, n.store, n.sql, "SELECT started_at FROM intents "+w.tail("ORDER BY started_at DESC"), w.args, func(scan func(...any) error) error {
		var at int64
		err := scan(&at)
		began = append(began, at)
		return err
	})
	p.Count = int64(len(began))
	if err == nil && !p.Fits() && p.Max > 0 {
		p.Next = fromMicros(began[p.Max-1]).Add(p.Per)
	}
	return err
}

// spent adds up what meters that ended in the window were charged and what is
// set aside for what lives.
func (n counter) spent(p *Pace, held int64) error {
	ended, err := n.ended(p.Ceiling)
	p.Count = held
	for _, m := range ended {
		p.Count = add(p.Count, m.amount)
	}
	if err != nil || p.Fits() {
		return err
	}
	left := *p // as it will be when the window has left one of them behind
	left.Count = held
	for i := len(ended) - 1; i >= 0 && left.Fits(); i-- {
		p.Next = ended[i].at.Add(p.Per)
		left.Count = add(left.Count, ended[i].amount)
	}
	return nil
}

// held sums up reservations of the scope, and those of one sandbox among them.
func (n counter) held(c Ceiling, id extensions.ID) (sum, own int64, err error) {
	org := StreamOf(c.Scope)
	var w where
	c.within(&w, "s.account")
	w.and("s.state <> 'destroyed'")
	w.and("x.kind = 'pending'")
	w.and("x.debit IN (?, ?)", accountID(org, AccountWallet, c.Currency), accountID(org, AccountBYOK, c.Currency))
	w.and("NOT EXISTS (SELECT 1 FROM transfers r WHERE r.pending_id = x.id)")
	err = query(n.ctx, n.store, n.sql, "SELECT x.subject, x.amount FROM sandboxes s JOIN transfers x ON x.subject = s.id "+w.tail(""), w.args, func(scan func(...any) error) error {
		var subject string
		var amount int64
		err := scan(&subject, &amount)
		if subject == string(id) {
			own = add(own, amount)
		}
		sum = add(sum, amount)
		return err
	})
	return sum, own, err
}

type endedMeter struct {
	at     time.Time
	amount int64
}

// ended lists what meters were charged that ended in the window, the oldest first.
func (n counter) ended(c Ceiling) (list []endedMeter, err error) {
	var w where
	c.within(&w, "m.account")
	w.and("m.closed_at > ?", toMicros(n.now.Add(-c.Per)))
	w.and("c.currency = ?", c.Currency)
	w.and("c.memo NOT LIKE 'infra_memo%'")
	stmt := "SELECT m.closed_at, CAST(sum(c.amount) AS BIGINT) FROM meters m JOIN charges c ON c.meter_id = m.id "
	err = query(n.ctx, n.store, n.sql, stmt+w.tail("GROUP BY m.id, m.closed_at ORDER BY m.closed_at"), w.args, func(scan func(...any) error) error {
		var at int64
		var m endedMeter
		err := scan(&at, &m.amount)
		m.at = fromMicros(at)
		list = append(list, m)
		return err
	})
	return list, err
}
