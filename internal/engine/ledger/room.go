package ledger

import (
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Room bounds how many sandboxes of an account may live at one place. It is
// counted in the transaction that takes the place, so that two runs at once
// cannot both have the last one.
type Room struct {
	Extension string // binding id; "" = any
	Host      string // name; "" = any
	Max       int64  // 1 and more
}

// Full says that a place has no room. It arrives as KindExhausted.
type Full struct{ Live, Max int64 }

func (e *Full) Error() string {
	return fmt.Sprintf("%d of at most %d sandboxes live there", e.Live, e.Max)
}

// room counts what lives at a place beside row: not destroyed, not past its end.
func (t *tx) room(row Sandbox, rooms []Room) error {
	for _, r := range rooms {
		var w where
		w.living(row.Account, t.now)
		w.equal("extension", r.Extension)
		w.equal("host", r.Host)
		w.and("id <> ?", string(row.ID))
		var live int64
		err := query(t.ctx, t.store, t.sql, "SELECT count(*) FROM sandboxes "+w.tail(""), w.args, func(scan func(...any) error) error { return scan(&live) })
		if err != nil {
			return err
		}
		if live >= r.Max {
			return failure(extensions.KindExhausted, string(row.ID), &Full{Live: live, Max: r.Max})
		}
	}
	return nil
}
