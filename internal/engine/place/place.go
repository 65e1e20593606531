// Package place opens the backends of one engine and calls them. It alone sets deadline, retry, redaction and log
// line of a call. It keeps one listing per place and remembers which places answered. It knows no ledger; the time
// comes in as a function.
package place

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Address names one backend: a binding, for an account, on a host.
type Address struct {
	Binding, Account string
	Host             string // ref; "" if the binding needs none
	// Identity is that of the credential that made what is looked for there; "" = it is not known. It is no part of the place:
	// a backend opened with another one than its own does not prove that something is absent.
	Identity string
}

// String returns the binding, with "@host" if there is a host, as route.Candidate.ID does.
func (a Address) String() string {
	if h, err := extensions.ParseHostRef(a.Host); err == nil {
		return a.Binding + "@" + h.Name
	}
	return a.Binding
}

// key tells places apart.
func (a Address) key() string { return a.Binding + "\x00" + a.Account + "\x00" + a.Host }

// Options opens places. Every field is required except Credentials.
type Options struct {
	Catalog  *catalog.Catalog
	Handlers map[string]extensions.Extension // by handler
	// Credentials are per binding and declared field. A missing one comes from the vendor's usual environment variable,
	// with Getenv.
	Credentials map[string]map[string]extensions.Secret
	Getenv      func(string) string
	// AllowedCommands are the programs that bindings may run; see extensions.Config.
	AllowedCommands []string
	StateDir        string
	// Clock is this machine's clock, for ages; Now is the ledger's, for deadlines.
	Clock, Now func() time.Time
	Log        *slog.Logger
	Flights    *flight.Group
}

// Places opens each place once. It is safe for concurrent use.
type Places struct {
	Options
	pacer pacer
	mu    sync.Mutex
	open  map[string]*opened // by key; nil = closed
	seen  map[string]Sighting
	// prepared are the images that were, by place; hidden are secrets by name, of bindings that were given them later and of
	// sandboxes.
	prepared map[string]bool
	hidden   map[string]map[string]extensions.Secret
}

// New returns places, none of them open.
func New(o Options) *Places {
	return &Places{Options: o, open: map[string]*opened{}, seen: map[string]Sighting{}, prepared: map[string]bool{},
		hidden: map[string]map[string]extensions.Secret{}}
}

// Open returns the backend of a place. Concurrent callers share one attempt.
func (p *Places) Open(ctx context.Context, at Address) (*Backend, error) {
	if o := p.opened(at); o != nil {
		return o.to(at.Identity), nil
	}
	o, err := flight.Do(ctx, p.Flights, "open\x00"+at.key(), func(ctx context.Context) (*opened, error) {
		if o := p.opened(at); o != nil { // opened by a flight that ended after the caller had looked
			return o, nil
		}
		return p.dial(ctx, at)
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, p.classify(call{op: "open", binding: at.Binding}, err)
	}
	if err != nil {
		return nil, err
	}
	return o.to(at.Identity), nil
}

func (p *Places) opened(at Address) *opened {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[at.key()]
}

func (p *Places) dial(ctx context.Context, at Address) (*opened, error) {
	binding, cfg, err := p.config(at)
	if err != nil {
		return nil, err
	}
	b := &opened{Binding: binding, places: p, at: at, identity: identityOf(p.Handlers[binding.Handler], binding.Descriptor, cfg)}
	err = p.invoke(ctx, call{op: "open", binding: binding.ID, place: at.key(), timeout: timeoutLook, patience: patienceLook,
		secrets: cfg.Credentials},
		func(ctx context.Context) (err error) {
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
	p.open[at.key()] = b
	return b, nil
}

// config returns the configuration to open a place with.
func (p *Places) config(at Address) (catalog.Binding, extensions.Config, error) {
	binding, err := p.Catalog.Named(at.Binding)
	if err != nil {
		return binding, extensions.Config{}, err
	}
	use, _ := p.CredentialsOf(binding)
	cfg := extensions.Config{Binding: binding.ID, Account: at.Account, Values: binding.Config, Credentials: use, StateDir: p.StateDir,
		AllowedCommands: p.AllowedCommands}
	if at.Host != "" {
		h, err := extensions.ParseHostRef(at.Host)
		if err != nil {
			return binding, cfg, err
		}
		cfg.Host = &h
	}
	return binding, cfg, nil
}

// CredentialsOf returns the credentials that open a binding, from the user's and from the vendor's environment
// variables, and the missing ones; see [extensions.Descriptor.Pick].
func (p *Places) CredentialsOf(b catalog.Binding) (use map[string]extensions.Secret, missing [][]extensions.CredentialField) {
	return b.Descriptor.Pick(p.Credentials[b.ID], p.usual(b))
}

// usual is what the vendor's environment variables hold.
func (p *Places) usual(b catalog.Binding) map[string]extensions.Secret {
	out := map[string]extensions.Secret{}
	for _, f := range b.Descriptor.Credentials {
		if v := p.Getenv(f.Env); f.Env != "" && v != "" {
			out[f.Name] = extensions.NewSecret(v)
		}
	}
	return out
}

// Configured reports whether a binding takes part in routing without being pinned: a place of the user's own
// does, unless its binding says otherwise. A vendor's account spends money, so its user has to say so: by an entry in the provider's
// credentials, or by `enabled: true` in a binding of their own. The environment alone says nothing.
func (p *Places) Configured(b catalog.Binding) bool {
	if b.Enabled != nil {
		return *b.Enabled
	}
	if !b.Descriptor.RunsAt(extensions.PlaceAccount) || b.Descriptor.NamedOnly {
		return true
	}
	given, entry := p.Credentials[b.ID]
	empty := true
	for _, s := range given {
		empty = empty && s.IsZero()
	}
	return entry && (len(given) == 0 || !empty)
}

// Has reports whether a binding of the catalog runs at such a place.
func (p *Places) Has(kind extensions.Place) bool {
	return slices.ContainsFunc(p.Catalog.Bindings, func(b catalog.Binding) bool { return b.Descriptor.RunsAt(kind) })
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
