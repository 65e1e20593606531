package place

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// listingAge bounds how old a listing may be for a process that lives on.
const listingAge = 5 * time.Second

// Listing is all that a place holds, by id.
type Listing = map[extensions.ID]extensions.Observation

// Observe looks at one sandbox through the shared listing: Terraform reads every
// resource by itself, ten at a time, and one listing serves them all. What the
// listing does not show, or could not see, is asked for by itself: a listing may
// lag, in both directions where the place says so, a handle does not.
func (b *Backend) Observe(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	if b.Binding.Descriptor.Find.Strength != extensions.FindStrong {
		return b.Look(ctx, h)
	}
	all, err := b.List(ctx)
	if err != nil {
		return extensions.Observation{}, err
	}
	if o, ok := all[h.ID]; ok && o.Phase != extensions.PhaseUnreachable {
		return o, nil
	}
	return b.Look(ctx, h)
}

// Look asks the place for one sandbox now.
func (b *Backend) Look(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	var obs []extensions.Observation
	c := call{op: "status", id: h.ID, timeout: timeoutLook}
	err := b.call(ctx, c, func(ctx context.Context) (err error) {
		obs, err = b.backend.Status(ctx, []extensions.Handle{h})
		return err
	})
	if err != nil {
		return extensions.Observation{}, err
	}
	if len(obs) != 1 {
		return extensions.Observation{}, b.Classify(c.op, h.ID, nil, extensions.Errorf(extensions.KindInternal, "asked for one sandbox, %d answered", len(obs)))
	}
	if obs[0].Phase == extensions.PhaseUnreachable {
		return obs[0], b.Classify(c.op, h.ID, nil, obs[0].Err)
	}
	return obs[0], nil
}

// List gives all that the place holds, as it was a few seconds ago at most, and
// after the last change of ours.
func (b *Backend) List(ctx context.Context) (Listing, error) {
	b.mu.Lock()
	look, at, epoch := b.look, b.lookAt, b.epoch
	b.mu.Unlock()
	if look != nil && b.places.Now().Sub(at) < listingAge {
		return look, nil
	}
	all, err := flight.Do(ctx, b.places.Flights, "list\x00"+b.at.key()+"\x00"+strconv.FormatInt(epoch, 10), func(ctx context.Context) (Listing, error) {
		return b.list(ctx, call{op: "status", timeout: timeoutLook})
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, b.Classify("status", "", nil, err)
	}
	return all, err
}

// list asks for all that the place holds.
func (b *Backend) list(ctx context.Context, c call) (Listing, error) {
	var obs []extensions.Observation
	epoch := b.now()
	err := b.call(ctx, c, func(ctx context.Context) (err error) {
		obs, err = b.backend.Status(ctx, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b.keep(epoch, obs), nil
}

// changed drops the listing: something of ours changed at the place.
func (b *Backend) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.epoch++
	b.look = nil
}

// now is the epoch of what is asked for from here on.
func (b *Backend) now() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.epoch
}

// keep makes obs, all that the place holds, the listing for a while, unless
// something of ours changed there since it was asked for at epoch.
func (b *Backend) keep(epoch int64, obs []extensions.Observation) Listing {
	all := make(Listing, len(obs))
	for _, o := range obs {
		all[o.ID] = o
	}
	at := b.places.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.epoch == epoch {
		b.look, b.lookAt = all, at
	}
	return all
}
