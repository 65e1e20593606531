package tenant

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// naming is the place that a quote's body names.
type naming struct {
	Extension string `json:"extension"`
	Host      string `json:"host"`
}

// named is empty for a quote that names none.
func named(q *ledger.Quote) (n naming) {
	if q != nil {
		_ = json.Unmarshal(q.Body, &n) // of any form: a body without it names none
	}
	return n
}

// asked is a row as the owner's catalog is asked about it.
func asked(row ledger.Sandbox) Asked {
	return Asked{Extension: row.Extension, Host: row.Host, HostRef: row.HostRef, Spec: row.Spec, Request: row.Request, TTL: row.TTL}
}

// rowOf is what a begin will be.
func rowOf(b ledger.Begin) ledger.Sandbox {
	return ledger.Sandbox{ID: b.ID, Account: b.Account, Extension: b.Extension, Host: b.Host, HostRef: b.HostRef, Spec: b.Spec, Request: b.Request, TTL: b.TTL}
}

// chosen is where a new life is to be led: at the place that its quote names,
// unless one is recorded.
func chosen(row ledger.Sandbox, q *ledger.Quote) ledger.Sandbox {
	n := named(q)
	if row.Extension == "" && n.Extension != "" {
		row.Extension, row.Host, row.HostRef = n.Extension, n.Host, ""
	}
	return row
}

// placed is where the sandbox is after the change, what is asked for there and
// for how long it may run.
func (v *view) placed(row ledger.Sandbox, c ledger.Change, since time.Time) ledger.Sandbox {
	end := endOf(row, c.Patch)
	if c.NextGeneration {
		since = v.now()
	}
	row = patched(row, c)
	if life := end.Sub(since); life > row.TTL+skew { // what it says of its ttl is not all
		row.TTL = life
	}
	return row
}

// patched is the row after the change; a new life is led where it was quoted
// for.
func patched(row ledger.Sandbox, c ledger.Change) ledger.Sandbox {
	if n := named(c.Quote); c.NextGeneration && n.Extension != "" && (n.Extension != row.Extension || n.Host != row.Host) {
		row.Extension = ""
	}
	setText(&row.Extension, c.Patch.Extension)
	setText(&row.Host, c.Patch.Host)
	setText(&row.HostRef, c.Patch.HostRef)
	if c.Patch.Spec != nil {
		row.Spec = c.Patch.Spec
	}
	if c.Patch.Request != nil {
		row.Request = c.Patch.Request
	}
	if c.Patch.TTL != nil {
		row.TTL = *c.Patch.TTL
	}
	return chosen(row, c.Quote)
}

func later(row ledger.Sandbox, p ledger.Patch) bool { return endOf(row, p).After(row.ExpiresAt) }

func endOf(row ledger.Sandbox, p ledger.Patch) time.Time {
	if p.ExpiresAt != nil {
		return *p.ExpiresAt
	}
	return row.ExpiresAt
}

// takes reports a change that begins something at a place, or lets it run there
// in another way than before: the owner's policies are asked. What ends or
// describes a sandbox needs nobody's leave.
func takes(row ledger.Sandbox, c ledger.Change, place ledger.Sandbox) bool {
	begins := c.NextGeneration || c.Intent != nil && (c.Intent.Kind == ledger.IntentCreate || c.Intent.Kind == ledger.IntentRecreate)
	return begins || c.Patch.Extension != nil || c.Patch.Spec != nil || place.Host != row.Host || paidAs(place.Request) != paidAs(row.Request)
}

func paidAs(request json.RawMessage) string {
	var r struct {
		Billing string `json:"billing"`
	}
	_ = json.Unmarshal(request, &r) // of any form: one without it says nothing
	return r.Billing
}

// permit asks the owner's policies about a place. A host that a quote names
// and nobody registered is judged when it is recorded: before it is asked for
// anything.
func (v *view) permit(ctx context.Context, place ledger.Sandbox, recorded bool) error {
	if v.Permit == nil || place.Extension == "" {
		return nil
	}
	a := asked(place)
	if a.Host != "" && a.HostRef == "" {
		h, err := v.base.Host(ctx, place.Account, a.Host)
		switch {
		case extensions.IsKind(err, extensions.KindNotFound) && !recorded:
			return nil
		case err != nil && !extensions.IsKind(err, extensions.KindNotFound):
			return err
		}
		a.HostRef = h.Ref
	}
	return v.Permit(ctx, place.Account, a)
}
