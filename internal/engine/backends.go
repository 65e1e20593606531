package engine

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// place names one backend: a binding, for an account, on a host.
type place struct{ binding, account, host string }

// opened is one backend with the last look at all that it holds. Terraform
// reads every resource by itself, ten at a time; one listing serves them all.
type opened struct {
	extensions.Backend
	place   place
	binding catalog.Binding

	mu     sync.Mutex
	epoch  int64 // raised by every mutation of ours
	look   map[ID]extensions.Observation
	lookAt time.Time
	flight singleflight.Group
}

// lookMaxAge bounds how old a listing may be for a process that lives on.
const lookMaxAge = 5 * time.Second

// backends opens each place once per engine.
type backends struct {
	mu     sync.Mutex
	open   map[place]*opened
	flight singleflight.Group
}

func (e *Engine) backend(ctx context.Context, p place) (*opened, error) {
	e.backends.mu.Lock()
	b := e.backends.open[p]
	e.backends.mu.Unlock()
	if b != nil {
		return b, nil
	}
	// The first caller opens for all; its context may end while others wait,
	// so opening runs apart from any one caller's cancellation.
	ch := e.backends.flight.DoChan(p.binding+"\x00"+p.account+"\x00"+p.host, func() (any, error) {
		ctx, done, err := e.life.share(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
		return e.openBackend(ctx, p)
	})
	select {
	case <-ctx.Done():
		return nil, e.classify(call{op: "open", binding: p.binding}, ctx.Err())
	case r := <-ch:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*opened), nil
	}
}

func (e *Engine) openBackend(ctx context.Context, p place) (*opened, error) {
	e.backends.mu.Lock()
	b := e.backends.open[p] // by a flight that ended after the caller had looked
	e.backends.mu.Unlock()
	if b != nil {
		return b, nil
	}
	binding, cfg, err := e.config(p)
	if err != nil {
		return nil, err
	}
	c := call{op: "open", binding: binding.ID, timeout: timeoutLook, secrets: cfg.Credentials}
	var be extensions.Backend
	err = e.invoke(ctx, c, func(ctx context.Context) (err error) {
		be, err = e.handlers[binding.Handler].Open(ctx, cfg)
		return err
	})
	if err != nil {
		return nil, err
	}
	b = &opened{Backend: be, place: p, binding: binding}
	e.backends.mu.Lock()
	defer e.backends.mu.Unlock()
	if e.backends.open == nil {
		return nil, errors.Join(errClosed(), be.Close())
	}
	e.backends.open[p] = b
	return b, nil
}

// config is what a place is opened with.
func (e *Engine) config(p place) (catalog.Binding, extensions.Config, error) {
	binding, err := e.binding(p.binding)
	if err != nil {
		return binding, extensions.Config{}, err
	}
	cfg := extensions.Config{
		Binding: binding.ID, Account: p.account, Values: binding.Config,
		Credentials: e.credentials(binding), StateDir: e.stateDir,
	}
	if p.host != "" {
		h, err := extensions.ParseHostRef(p.host)
		if err != nil {
			return binding, cfg, err
		}
		cfg.Host = &h
	}
	return binding, cfg, nil
}

// credentials takes what the user gave, else the vendor's usual environment.
func (e *Engine) credentials(b catalog.Binding) map[string]Secret {
	creds := map[string]Secret{}
	for _, f := range b.Descriptor.Credentials {
		if s, ok := e.opts.Credentials[b.ID][f.Name]; ok && !s.IsZero() {
			creds[f.Name] = s
		} else if v := e.getenv(f.Env); f.Env != "" && v != "" {
			creds[f.Name] = extensions.NewSecret(v)
		}
	}
	return creds
}

func (b *backends) closeAll() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, o := range b.open {
		errs = append(errs, o.Close())
	}
	b.open = nil
	return errors.Join(errs...)
}

// changed drops the listing: something of ours changed at the place.
func (b *opened) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.epoch++
	b.look = nil
}

// now is the epoch of what is asked for from here on.
func (b *opened) now() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.epoch
}

// keep makes obs, all that the place holds, the listing for a while, unless
// something of ours changed there since it was asked for at epoch.
func (b *opened) keep(epoch int64, obs []extensions.Observation, at time.Time) map[ID]extensions.Observation {
	all := make(map[ID]extensions.Observation, len(obs))
	for _, o := range obs {
		all[o.ID] = o
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.epoch == epoch {
		b.look, b.lookAt = all, at
	}
	return all
}

// observe looks at one sandbox through the shared listing. What the listing
// does not show, or could not see, is asked for by itself: a listing may lag,
// in both directions where the place says so, a handle does not.
func (e *Engine) observe(ctx context.Context, b *opened, h extensions.Handle) (extensions.Observation, error) {
	if b.binding.Descriptor.Find.Strength != extensions.FindStrong {
		return e.observeOne(ctx, b, h)
	}
	all, err := e.listing(ctx, b)
	if err != nil {
		return extensions.Observation{}, err
	}
	if o, ok := all[h.ID]; ok && o.Phase != extensions.PhaseUnreachable {
		return o, nil
	}
	return e.observeOne(ctx, b, h)
}

func (e *Engine) observeOne(ctx context.Context, b *opened, h extensions.Handle) (extensions.Observation, error) {
	var obs []extensions.Observation
	c := call{op: "status", binding: b.binding.ID, id: h.ID, timeout: timeoutLook}
	err := e.invoke(ctx, c, func(ctx context.Context) (err error) {
		obs, err = b.Status(ctx, []extensions.Handle{h})
		return err
	})
	if err != nil {
		return extensions.Observation{}, err
	}
	if len(obs) != 1 {
		return extensions.Observation{}, e.classify(c, extensions.Errorf(extensions.KindInternal, "asked for one sandbox, %d answered", len(obs)))
	}
	if obs[0].Phase == extensions.PhaseUnreachable {
		return obs[0], e.classify(c, obs[0].Err)
	}
	return obs[0], nil
}

func (e *Engine) listing(ctx context.Context, b *opened) (map[ID]extensions.Observation, error) {
	b.mu.Lock()
	look, at, epoch := b.look, b.lookAt, b.epoch
	b.mu.Unlock()
	if look != nil && e.clock().Sub(at) < lookMaxAge {
		return look, nil
	}
	c := call{op: "status", binding: b.binding.ID, timeout: timeoutLook}
	ch := b.flight.DoChan(strconv.FormatInt(epoch, 10), func() (any, error) {
		ctx, done, err := e.life.share(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
		var obs []extensions.Observation
		err = e.invoke(ctx, c, func(ctx context.Context) (err error) {
			obs, err = b.Status(ctx, nil)
			return err
		})
		if err != nil {
			return nil, err
		}
		return b.keep(epoch, obs, e.clock()), nil
	})
	select {
	case <-ctx.Done():
		return nil, e.classify(c, ctx.Err())
	case r := <-ch:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(map[ID]extensions.Observation), nil
	}
}
