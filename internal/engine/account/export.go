package account

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/export"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ExportQuery selects the contents of an export. From and To are as in UsageQuery, except that empty means
// unbounded.
type ExportQuery struct {
	From, To string
	WholeOrg bool // all workspaces of the organization; always so for events
}

// ExportCharges writes the account's settled charges as focus, csv or json, and returns their number.
func (a *Account) ExportCharges(ctx context.Context, q ExportQuery, format string, w io.Writer) (int64, error) {
	from, to, err := a.bounds(q)
	if err != nil {
		return 0, err
	}
	l, err := a.books.Reader(ctx)
	if err != nil {
		return 0, err
	}
	f := ledger.UsageFilter{From: from, To: to, Account: a.name}
	if q.WholeOrg {
		f.Account = ledger.StreamOf(a.name)
	}
	return export.Charges(ctx, l, f, export.Format(format), w)
}

// ExportEvents writes the chain of the account's organization, one CloudEvent per line, and returns their
// number.
func (a *Account) ExportEvents(ctx context.Context, q ExportQuery, w io.Writer) (int64, error) {
	from, to, err := a.bounds(q)
	if err != nil {
		return 0, err
	}
	l, err := a.books.Reader(ctx)
	if err != nil {
		return 0, err
	}
	return export.Copy(ctx, l, ledger.StreamOf(a.name), from, to, w)
}

func (a *Account) bounds(q ExportQuery) (from, to time.Time, err error) {
	now := a.books.Now().UTC()
	for _, b := range []struct {
		field, text string
		at          *time.Time
	}{{"from", q.From, &from}, {"to", q.To, &to}} {
		if b.text == "" {
			continue
		}
		if *b.at, err = moment(b.text, now); err != nil {
			return from, to, extensions.AtField(b.field, err)
		}
	}
	if !to.IsZero() && from.After(to) {
		return from, to, extensions.AtField("from", extensions.Invalid("it is after to", "set an earlier from or a later to"))
	}
	return from, to, nil
}

// Receiver is where events are sent; see export.Target.
type Receiver struct {
	URL    string // https; without a path, /api/v1/events is added
	Name   string // "" = the URL; the name keeps its position when the URL changes
	Token  string // a bearer token; never stored
	CA     []byte // PEM; nil = the system's authorities
	Resend bool   // only held events
}

// Sent is the result of sending events.
type Sent struct {
	Receiver  string
	Events    int64 // events of the chain accepted in this run
	Usage     int64 // events made from them, one per settled charge
	Delivered int64 // last event of the chain up to which all is delivered
	Withheld  []WithheldEvent
}

// WithheldEvent is an event that is resent only on request.
type WithheldEvent struct {
	Seq    int64
	State  string // rejected | ambiguous
	Reason string
	First  time.Time // attempt
}

// SendEvents sends the receiver those events of the account's organization that it lacks, from the first
// on, and the usage events that they settle. The result is valid even with an error. See export.Send.
func (a *Account) SendEvents(ctx context.Context, r Receiver) (Sent, error) {
	l, err := a.books.Reader(ctx)
	if err != nil {
		return Sent{}, err
	}
	if l.ID() != "" { // else there is nothing to send, and no ledger to create
		if l, err = a.books.Changer(ctx); err != nil {
			return Sent{}, err
		}
	}
	got, err := export.Send(ctx, l, ledger.StreamOf(a.name), export.Options{
		Target: export.Target{URL: r.URL, Sink: r.Name, Token: r.Token, CA: r.CA}, Resend: r.Resend,
	})
	out := Sent{Receiver: got.Sink, Events: got.Events, Usage: got.Usage, Delivered: got.Delivered}
	for _, h := range got.Withheld {
		out.Withheld = append(out.Withheld, WithheldEvent{Seq: h.Seq, State: string(h.State), Reason: h.Reason, First: h.FirstAttemptAt})
	}
	return out, err
}
