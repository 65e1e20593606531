package engine

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// occupancy counts the account's sandboxes by binding and by host.
type occupancy struct {
	bindings, hosts map[string]int64
	replaced        place.Address // of what the request takes the place of, with the host's name; zero = nothing
}

// occupied counts what takes room now. What the request itself takes the place
// of does not count: the life before a recreate, and what has its name. A
// ledger that cannot be read counts nothing; the transaction that takes the
// room has the last word anyway, and tells what is wrong with the ledger.
func (e *Engine) occupied(ctx context.Context, p *prepared, how preparation) *occupancy {
	if !how.binding {
		return nil // a plan is a function of arguments and catalog
	}
	l, err := e.reader(ctx)
	if err != nil {
		return nil
	}
	rows, err := l.Occupancy(ctx, e.account)
	if err != nil {
		return nil
	}
	o := &occupancy{bindings: map[string]int64{}, hosts: map[string]int64{}}
	add := func(extension, host string, n int64) {
		o.bindings[extension] += n
		if host != "" {
			o.hosts[host] += n
		}
	}
	for _, r := range rows {
		add(r.Extension, r.Host, r.Live)
	}
	if row, err := e.replaced(ctx, l, p, how); err == nil && row.State != lifecycle.Destroyed && row.State != lifecycle.Requested && row.ExpiresAt.After(e.now()) {
		add(row.Extension, row.Host, -1)
		o.replaced = place.Address{Binding: row.Extension, Host: row.Host}
	}
	return o
}

func (e *Engine) replaced(ctx context.Context, l ledger.Ledger, p *prepared, how preparation) (ledger.Sandbox, error) {
	if how.again != "" {
		return l.Get(ctx, how.again)
	}
	return l.ByName(ctx, e.account, p.req.Name)
}

// prepareRoom prepares a create. Where every place is full, it may be of what
// a run that died has left: that is settled, and counted again.
func (e *Engine) prepareRoom(ctx context.Context, req Request, notify Notify) (*prepared, error) {
	how := preparation{binding: true}
	p, err := e.prepare(ctx, req, how)
	if !extensions.IsKind(err, extensions.KindExhausted) {
		return p, err
	}
	if _, lost := e.recovered(ctx, notify); lost != nil {
		return p, err
	}
	return e.prepare(ctx, req, how)
}

// room is what is known of how full a candidate's place is; told is what it says
// itself.
func (o *occupancy) room(b catalog.Binding, c *route.Candidate, told extensions.Capacity) route.Room {
	r := route.Room{Max: b.MaxSandboxes, PlaceMax: told.Max, PlaceUsed: told.Used}
	if limit := b.Capabilities.MaxConcurrent; limit != nil && (r.Max == nil || *limit < *r.Max) {
		r.Max = limit
	}
	if o != nil {
		live, hostLive := o.bindings[c.Binding], o.hosts[c.HostName()]
		r.Live, r.HostLive = &live, &hostLive
		switch mine := (place.Address{Binding: c.Binding, Host: c.HostName()}); {
		case told.Used == nil && c.Host == nil:
			r.PlaceUsed = &live // at least
		case told.Used != nil && *told.Used > 0 && o.replaced == mine:
			used := *told.Used - 1
			r.PlaceUsed = &used
		}
	}
	return r
}
