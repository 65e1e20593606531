package sqlstore

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Paces implements Ledger.
func (s *store) Paces(ctx context.Context, ceilings []bank.Ceiling, reserve *bank.Reserve) ([]bank.Pace, error) {
	out := make([]bank.Pace, 0, len(ceilings))
	for _, c := range ceilings {
		need := c.NeedOf(reserve)
		p := bank.Pace{Ceiling: c, Need: need, At: s.now()}
		err := c.Check()
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

// ceilings checks all ceilings; begins says that the change begins a sandbox. The caller holds the org's
// lock.
func (t *tx) ceilings(row ledger.Sandbox, all []bank.Ceiling, r *bank.Reserve, begins bool) error {
	n := counter{ctx: t.ctx, store: t.store, sql: t.sql, now: t.now}
	for _, c := range all {
		need, asked := c.Need(r, begins)
		if !asked {
			continue
		}
		p, err := n.pace(c, need, r != nil && r.Total, row.ID)
		if err == nil {
			err = p.Refusal(row.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// counter counts for ceilings, inside a transaction or outside.
type counter struct {
	ctx   context.Context
	store *store
	sql   queryer
	now   time.Time
}

// pace returns the pace of a ceiling; see Ceiling.Spent.
func (n counter) pace(c bank.Ceiling, need int64, total bool, id extensions.ID) (bank.Pace, error) {
	if err := c.Check(); err != nil {
		return bank.Pace{}, err
	}
	if c.Currency == "" {
		began, err := n.began(c)
		if err != nil {
			return bank.Pace{}, err
		}
		return c.Begun(n.now, began), nil
	}
	held, err := n.setAside(c)
	if err != nil {
		return bank.Pace{}, err
	}
	ended, err := n.charged(c)
	if err != nil {
		return bank.Pace{}, err
	}
	return c.Spent(n.now, held, ended, need, total, id), nil
}

// within limits column to the accounts in a ceiling's scope.
func (w *where) within(c bank.Ceiling, column string) {
	if c.Scope == ledger.StreamOf(c.Scope) {
		prefix := c.Scope + "/"
		w.and("substr("+column+", 1, ?) = ?", int64(utf8.RuneCountInString(prefix)), prefix)
		return
	}
	w.and(column+" = ?", c.Scope)
}

// began returns when the sandboxes of the window began, newest first.
func (n counter) began(c bank.Ceiling) (list []time.Time, err error) {
	var w where
	w.within(c, "account")
	w.and("kind IN ('create', 'recreate')")
	w.and("started_at > ?", toMicros(c.Since(n.now)))
	if c.Metered {
		w.and("metered = 1")
	}
	err = query(n.ctx, n.store, n.sql, "SELECT started_at FROM intents "+w.tail("ORDER BY started_at DESC"), w.args,
		func(scan func(...any) error) error {
			var at int64
			err := scan(&at)
			list = append(list, fromMicros(at))
			return err
		})
	return list, err
}

// setAside lists the reservations of live sandboxes in the scope.
func (n counter) setAside(c bank.Ceiling) (list []bank.SetAside, err error) {
	org := ledger.StreamOf(c.Scope)
	var w where
	w.within(c, "s.account")
	w.and("s.state <> 'destroyed'")
	w.and("x.kind = 'pending'")
	w.and("x.debit IN (?, ?)", bank.AccountID(org, bank.AccountWallet, c.Currency), bank.AccountID(org, bank.AccountBYOK, c.Currency))
	w.and("NOT EXISTS (SELECT 1 FROM transfers r WHERE r.pending_id = x.id)")
	stmt := "SELECT x.subject, x.amount FROM sandboxes s JOIN transfers x ON x.subject = s.id " + w.tail("")
	err = query(n.ctx, n.store, n.sql, stmt, w.args, func(scan func(...any) error) error {
		var x bank.SetAside
		err := scan(&x.For, &x.Amount)
		list = append(list, x)
		return err
	})
	return list, err
}

// charged lists the charges of meters that ended in the window, oldest first.
func (n counter) charged(c bank.Ceiling) (list []bank.Charged, err error) {
	var w where
	w.within(c, "m.account")
	w.and("m.closed_at > ?", toMicros(c.Since(n.now)))
	w.and("c.currency = ?", c.Currency)
	w.and("c.memo NOT LIKE '" + bank.AccountInfra + "%'")
	stmt := "SELECT m.closed_at, c.amount FROM meters m JOIN charges c ON c.meter_id = m.id " + w.tail("ORDER BY m.closed_at")
	err = query(n.ctx, n.store, n.sql, stmt, w.args, func(scan func(...any) error) error {
		var at int64
		var x bank.Charged
		err := scan(&at, &x.Amount)
		x.At = fromMicros(at)
		list = append(list, x)
		return err
	})
	return list, err
}
