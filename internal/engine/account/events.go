package account

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Event is one ledger entry for people.
type Event struct {
	Seq  int64
	At   time.Time
	Type string
	ID   string // of a sandbox, snapshot or host
	Data string // the CloudEvent as JSON
}

// Events returns the newest limit events of the account's organization, oldest first; 0 = all. A non-empty
// id selects one sandbox, snapshot or host.
func (a *Account) Events(ctx context.Context, id string, limit int) ([]Event, error) {
	l, err := a.books.Reader(ctx)
	if err != nil {
		return nil, err
	}
	all, err := l.Events(ctx, ledger.StreamOf(a.name), 1, 0)
	if err != nil {
		return nil, err
	}
	var out []Event
	for _, ev := range all {
		if id == "" || ev.Subject == id {
			out = append(out, Event{Seq: ev.Seq, At: ev.Time, Type: ev.Type, ID: ev.Subject, Data: string(ev.CloudEvent)})
		}
	}
	if limit > 0 && len(out) > limit {
		out = out[len(out)-limit:]
	}
	return out, nil
}
