// Package engine has the use cases: it resolves profiles, chooses places, writes the ledger before anything can
// cost money, calls extensions, settles uncertain outcomes and cleans up. It is the only caller of extensions
// and the only writer of the ledger; the Terraform provider and the command line are thin layers over it.
package engine

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/account"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/life"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/owned"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Aliases of the contract's types for the layers above, so that they import the engine and nothing below it.
type (
	// ID identifies a sandbox for its whole life.
	ID = extensions.ID
	// Kind is the class of a failure.
	Kind = extensions.Kind
	// Error is a classified failure with a remedy.
	Error = extensions.Error
	// Secret is a value that never prints.
	Secret = extensions.Secret
	// Host is a machine the user owns.
	Host = extensions.Host
	// Reachability is the way into a sandbox.
	Reachability = extensions.Reachability
	// ExecRequest is one command to run inside.
	ExecRequest = extensions.ExecRequest
	// ExecResult is a finished command.
	ExecResult = extensions.ExecResult
)

// DefaultAccount is billed and listed if none is configured.
const DefaultAccount = "default/default"

// Options configure an Engine. Every field except Extensions has a useful zero value.
type Options struct {
	// Extensions lists every adapter; see package all.
	Extensions []extensions.Extension
	// Catalog lists folders; later ones win. The built-in catalog is always first.
	Catalog []string
	// Ledger is a URL: sqlite:///path, or postgres://host/database, which machines may share.
	// "" = ledger.db in StateDir.
	Ledger string
	// StateDir has the default ledger and the extensions' files on this machine. "" = DefaultStateDir().
	StateDir string
	// Account is "org/workspace". "" = DefaultAccount.
	Account string
	// Credentials are per binding and declared field.
	Credentials map[string]map[string]Secret
	// AllowedCommands are the programs of this machine, by absolute path, that bindings may run; nil = none. Only the
	// person who runs this sets them, never a catalog.
	AllowedCommands []string
	// Lease is the wait before others take over from a dead run in a shared ledger; 0 = 30 s, the maximum.
	Lease time.Duration
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Rand is the source of ids; nil = crypto/rand.
	Rand io.Reader
	// Log receives structured progress and retries; nil discards it.
	Log *slog.Logger
}

// Notice is a message that does not stop the work.
type Notice = notice.Notice

// Notify receives notices while an operation runs; nil ignores them.
type Notify = notice.Notify

// Engine runs the use cases for one account and one catalog. It is safe for concurrent use.
type Engine struct {
	opts     Options
	catalog  *catalog.Catalog
	getenv   func(string) string
	flights  flight.Group
	places   *place.Places
	book     *book.Book
	accounts *account.Account
	life     *life.Manager
}

// New loads the catalog and checks the options. It neither opens the ledger nor dials, so every Terraform walk
// may call it. Errors are KindInvalid.
func New(opts Options) (*Engine, error) {
	if opts.Account == "" {
		opts.Account = DefaultAccount
	}
	if err := ledger.CheckAccount(opts.Account); err != nil {
		return nil, err
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	stateDir, err := stateDirOf(opts.StateDir)
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: opts, getenv: os.Getenv}
	handlers := map[string]extensions.Extension{}
	for _, x := range opts.Extensions {
		handlers[x.Describe().Handler] = x
	}
	if e.catalog, err = catalog.Load(opts.Catalog, opts.Extensions, opts.Now()); err != nil {
		return nil, err
	}
	scratch := &owned.Scratch{Dir: filepath.Join(stateDir, "spool")}
	e.book = book.New(book.Options{Ledger: opts.Ledger, StateDir: stateDir, Clock: opts.Now, Lease: opts.Lease, Rand: opts.Rand,
		Flights: &e.flights, Scratch: scratch})
	e.places = place.New(place.Options{Catalog: e.catalog, Handlers: handlers, Credentials: opts.Credentials,
		Getenv:          func(name string) string { return e.getenv(name) },
		AllowedCommands: opts.AllowedCommands, StateDir: stateDir, Clock: opts.Now, Now: e.book.Now, Log: opts.Log, Flights: &e.flights})
	e.accounts = account.New(opts.Account, e.catalog, e.book)
	e.life = life.New(life.Options{Account: opts.Account, Catalog: e.catalog, Places: e.places, Book: e.book, Scratch: scratch,
		StateDir: stateDir, Rand: opts.Rand, Log: opts.Log})
	for binding, fields := range opts.Credentials {
		if err := e.checkCredentials(binding, fields); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Close releases backends and the ledger, and waits for openings and listings under way. Sandboxes live on; the
// engine is unusable afterwards.
func (e *Engine) Close() error {
	e.flights.Close()
	return errors.Join(e.places.Close(), e.book.Close())
}

func (e *Engine) checkCredentials(binding string, fields map[string]Secret) error {
	b, err := e.catalog.Named(binding)
	if err != nil {
		return err
	}
	for name := range fields {
		if !slices.ContainsFunc(b.Descriptor.Credentials, func(f extensions.CredentialField) bool { return f.Name == name }) {
			return extensions.Errorf(extensions.KindInvalid, "%s takes no credential %q", binding, name)
		}
	}
	return nil
}
