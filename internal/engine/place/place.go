// Package place opens the backends of one engine and calls them. Deadline,
// retry, redaction and the log line of a call are set here and nowhere else.
// It keeps one listing a place and remembers which places answered. It knows
// no ledger; the time comes in as a function.
package place

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Address names one backend: a binding, for an account, on a host.
type Address struct {
	Binding, Account string
	Host             string // ref; "" where the binding needs none
}

func (a Address) key() string { return a.Binding + "\x00" + a.Account + "\x00" + a.Host }

// Options are what places are opened with. Every field is required, but for
// Credentials.
type Options struct {
	Catalog  *catalog.Catalog
	Handlers map[string]extensions.Extension // by handler
	// Credentials are per binding and declared field. What is not there is
	// taken from the vendor's usual environment variable, by Getenv.
	Credentials map[string]map[string]extensions.Secret
	Getenv      func(string) string
	StateDir    string
	Now         func() time.Time
	Log         *slog.Logger
	Flights     *flight.Group
}

// Places opens each place once. It may be used from several goroutines.
type Places struct {
	Options
	mu   sync.Mutex
	open map[Address]*Backend // nil = closed
	seen map[Address]Sighting
}

// New makes places of which none is open.
func New(o Options) *Places {
	return &Places{Options: o, open: map[Address]*Backend{}, seen: map[Address]Sighting{}}
}

// Open gives the backend of a place. Callers that open one at the same time
// share the attempt.
func (p *Places) Open(ctx context.Context, at Address) (*Backend, error) {
	if b := p.opened(at); b != nil {
		return b, nil
	}
	b, err := flight.Do(ctx, p.Flights, "open\x00"+at.key(), func(ctx context.Context) (*Backend, error) {
		if b := p.opened(at); b != nil { // by a flight that ended after the caller had looked
			return b, nil
		}
		return p.dial(ctx, at)
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, p.classify(call{op: "open", binding: at.Binding}, err)
	}
	return b, err
}

func (p *Places) opened(at Address) *Backend {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[at]
}

func (p *Places) dial(ctx context.Context, at Address) (*Backend, error) {
	binding, cfg, err := p.config(at)
	if err != nil {
		return nil, err
	}
	b := &Backend{Binding: binding, places: p, at: at}
	err = p.invoke(ctx, call{op: "open", binding: binding.ID, timeout: timeoutLook, secrets: cfg.Credentials}, func(ctx context.Context) (err error) {
		b.backend, err = p.Handlers[binding.Handler].Open(ctx, cfg)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		return nil, errors.Join(flight.ErrClosed, b.backend.Close())
	}
	p.open[at] = b
	return b, nil
}

// config is what a place is opened with.
func (p *Places) config(at Address) (catalog.Binding, extensions.Config, error) {
	binding, err := p.Catalog.Named(at.Binding)
	if err != nil {
		return binding, extensions.Config{}, err
	}
	cfg := extensions.Config{Binding: binding.ID, Account: at.Account, Values: binding.Config, Credentials: p.CredentialsOf(binding), StateDir: p.StateDir}
	if at.Host != "" {
		h, err := extensions.ParseHostRef(at.Host)
		if err != nil {
			return binding, cfg, err
		}
		cfg.Host = &h
	}
	return binding, cfg, nil
}

// CredentialsOf takes what the user gave, else the vendor's usual environment.
func (p *Places) CredentialsOf(b catalog.Binding) map[string]extensions.Secret {
	creds := map[string]extensions.Secret{}
	for _, f := range b.Descriptor.Credentials {
		if s, ok := p.Credentials[b.ID][f.Name]; ok && !s.IsZero() {
			creds[f.Name] = s
		} else if v := p.Getenv(f.Env); f.Env != "" && v != "" {
			creds[f.Name] = extensions.NewSecret(v)
		}
	}
	return creds
}

// Has reports whether an extension of this build runs on such a place.
func (p *Places) Has(kind extensions.Place) bool {
	for _, x := range p.Handlers {
		if x.Describe().Place == kind {
			return true
		}
	}
	return false
}

// Close releases every backend. Sandboxes live on.
func (p *Places) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, b := range p.open {
		errs = append(errs, b.backend.Close())
	}
	p.open = nil
	return errors.Join(errs...)
}
