package sqlstore

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// room counts the other sandboxes that live at a place: not destroyed and not past their deadline.
func (t *tx) room(row ledger.Sandbox, rooms []ledger.Room) error {
	for _, r := range rooms {
		var w where
		w.living(row.Account, t.now)
		w.equal("extension", r.Extension)
		w.equal("host", r.Host)
		w.and("id <> ?", string(row.ID))
		var live int64
		err := query(t.ctx, t.store, t.sql, "SELECT count(*) FROM sandboxes "+w.tail(""), w.args,
			func(scan func(...any) error) error { return scan(&live) })
		if err != nil {
			return err
		}
		if live >= r.Max {
			return fault.New(extensions.KindExhausted, string(row.ID), &ledger.Full{Live: live, Max: r.Max})
		}
	}
	return nil
}
