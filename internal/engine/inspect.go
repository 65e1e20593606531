package engine

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Event is one ledger entry for people.
type Event struct {
	Seq  int64
	At   time.Time
	Type string
	ID   string // of the sandbox, snapshot or host
	Data string // the CloudEvent, JSON
}

// Events reads the newest limit events of the account's organisation, oldest
// first; 0 = all. A non-empty id selects one sandbox, snapshot or host.
func (e *Engine) Events(ctx context.Context, id string, limit int) ([]Event, error) {
	l, err := e.reader(ctx)
	if err != nil {
		return nil, err
	}
	all, err := l.Events(ctx, ledger.StreamOf(e.account), 1, 0)
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

// Charges reads a sandbox's settled charges.
func (e *Engine) Charges(ctx context.Context, id ID) ([]Charge, error) {
	l, err := e.reader(ctx)
	if err != nil {
		return nil, err
	}
	cs, err := l.Charges(ctx, id)
	return chargesOf(cs), err
}

// LedgerURL is where the ledger is, without credentials.
func (e *Engine) LedgerURL() string {
	return ledger.ShownURL(e.ledgerURL())
}

// CheckLedger checks the form of a ledger's address. What it leads to is not
// looked at: neither the place nor the files it names.
func CheckLedger(address string) error {
	err := ledger.CheckURL(address)
	var file *fs.PathError
	if errors.As(err, &file) {
		return nil
	}
	return err
}
