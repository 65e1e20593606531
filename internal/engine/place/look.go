package place

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// listingAge limits the age of a listing in a long-lived process.
const listingAge = 5 * time.Second

// Listing has all sandboxes of a place, by ID.
type Listing = map[extensions.ID]extensions.Observation

// Observe looks at one sandbox through the shared listing: Terraform reads every resource separately, ten at a time,
// and one listing serves them all. It asks separately for a sandbox that the listing lacks or could not observe, and
// for every one where a listing may be out of date: a handle is not.
func (b *Backend) Observe(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	if !b.listsNow() {
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

func (b *Backend) listsNow() bool {
	return b.Binding.Descriptor.List.Freshness == extensions.ListStrong
}

// There reports whether a listed sandbox still exists, as far as the place can say: it asks again where the listing may
// be out of date.
func (b *Backend) There(ctx context.Context, o extensions.Observation) bool {
	if b.listsNow() {
		return true
	}
	now, err := b.Look(ctx, o.Handle)
	return err != nil || now.Phase != extensions.PhaseAbsent
}

// Look asks the place about one sandbox now.
func (b *Backend) Look(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	c := call{op: "status", id: h.ID, timeout: timeoutLook, patience: patienceLook, repeatable: true}
	var obs extensions.Observation
	err := b.call(ctx, c, func(ctx context.Context) error {
		all, err := b.backend.Status(ctx, []extensions.Handle{h})
		switch {
		case err != nil:
			return err
		case len(all) != 1:
			return extensions.Errorf(extensions.KindInternal, "asked for one sandbox, got %d", len(all))
		}
		switch obs = all[0]; {
		case obs.Phase == extensions.PhaseUnreachable:
			return obs.Err
		case obs.Phase == extensions.PhaseAbsent && b.stranger:
			return extensions.Errorf(extensions.KindNotFound, "it is absent")
		}
		return nil
	})
	return obs, err
}

// List returns all sandboxes of the place, at most a few seconds old and never from before our last change.
func (b *Backend) List(ctx context.Context) (Listing, error) {
	b.mu.Lock()
	look, at, epoch := b.look, b.lookAt, b.epoch
	b.mu.Unlock()
	if look != nil && b.places.Clock().Sub(at) < listingAge {
		return look, nil
	}
	all, err := flight.Do(ctx, b.places.Flights, "list\x00"+b.at.key()+"\x00"+strconv.FormatInt(epoch, 10),
		func(ctx context.Context) (Listing, error) {
			return b.list(ctx, call{op: "status", timeout: timeoutLook, patience: patienceLook, repeatable: true})
		})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, b.Classify("status", "", err)
	}
	return all, err
}

// list asks the place for all of its sandboxes.
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

// changed drops the listing after a change of ours at the place.
func (b *Backend) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.epoch++
	b.look = nil
}

// now returns the epoch of questions asked from here on.
func (b *Backend) now() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.epoch
}

// keep stores obs, all sandboxes of the place, as the listing, unless the place changed by us since epoch.
func (b *Backend) keep(epoch int64, obs []extensions.Observation) Listing {
	all := make(Listing, len(obs))
	for _, o := range obs {
		all[o.ID] = o
	}
	at := b.places.Clock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.epoch == epoch {
		b.look, b.lookAt = all, at
	}
	return all
}
