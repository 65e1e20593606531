// Package engine holds the use cases: it resolves profiles, chooses places,
// writes the ledger before anything can cost money, calls extensions, settles
// what is uncertain and cleans up. It is the only caller of extensions and the
// only writer of the ledger; the Terraform provider and the command line are
// thin over it.
package engine

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/account"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Aliases of what the layers above need of the contract, so that they import
// the engine and nothing below it.
type (
	// ID names a sandbox for its whole life.
	ID = extensions.ID
	// Kind is the class of a failure.
	Kind = extensions.Kind
	// Error is a classified failure with a remedy.
	Error = extensions.Error
	// Secret is a value that never prints.
	Secret = extensions.Secret
	// Host is a machine the user owns.
	Host = extensions.Host
	// Reachability tells how to get into a sandbox.
	Reachability = extensions.Reachability
	// ExecRequest is one command to run inside.
	ExecRequest = extensions.ExecRequest
	// ExecResult is a finished command.
	ExecResult = extensions.ExecResult
)

// DefaultAccount is billed and listed when none is configured.
const DefaultAccount = "default/default"

// Options configure an Engine. The zero value of every field but Extensions
// has a sensible meaning.
type Options struct {
	// Extensions is every adapter there is; see package all.
	Extensions []extensions.Extension
	// Catalog lists folders; later ones win. The built-in catalog is always first.
	Catalog []string
	// Ledger is a URL: sqlite:///path, or postgres://host/database, which
	// machines may share. "" = ledger.db in StateDir.
	Ledger string
	// StateDir holds the default ledger and what extensions keep on this
	// machine. "" = DefaultStateDir().
	StateDir string
	// Account is "org/workspace". "" = DefaultAccount.
	Account string
	// Credentials are per binding and declared field.
	Credentials map[string]map[string]Secret
	// Lease is how long a run that died is waited for where machines share the
	// ledger; 0 = 30 s, which is also the most.
	Lease time.Duration
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Rand is the source of ids; nil = crypto/rand.
	Rand io.Reader
	// Log receives structured progress and retries; nil discards it.
	Log *slog.Logger
}

// Notice is something worth telling that does not stop the work.
type Notice struct {
	Summary string
	Detail  string
}

// Notify receives notices while an operation runs; nil ignores them.
type Notify func(Notice)

// Engine runs the use cases for one account and one catalog. It may be used
// from several goroutines.
type Engine struct {
	opts     Options
	stateDir string
	account  string
	catalog  *catalog.Catalog
	log      *slog.Logger
	clock    func() time.Time // this machine's
	getenv   func(string) string
	flights  flight.Group
	places   *place.Places
	accounts *account.Account
	books    ledgers
	turns    turns
	recovery recovery
	scratch  scratch
	looked   sync.Map // host ref -> *sync.Once: see probeAgain
}

// New loads the catalog and checks the options. It opens no ledger and dials
// nothing, so every Terraform walk may call it. Errors are KindInvalid.
func New(opts Options) (*Engine, error) {
	e := &Engine{opts: opts, stateDir: opts.StateDir, account: opts.Account, log: opts.Log, clock: opts.Now, getenv: os.Getenv,
		recovery: recovery{turn: make(chan struct{}, 1)}}
	if e.account == "" {
		e.account = DefaultAccount
	}
	if err := CheckAccount(e.account); err != nil {
		return nil, err
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.clock == nil {
		e.clock = time.Now
	}
	handlers := map[string]extensions.Extension{}
	var descriptors []extensions.Descriptor
	for _, x := range opts.Extensions {
		d := x.Describe()
		handlers[d.Handler] = x
		descriptors = append(descriptors, d)
	}
	var err error
	if e.stateDir == "" {
		if e.stateDir, err = DefaultStateDir(); err != nil {
			return nil, err
		}
	}
	if e.stateDir, err = filepath.Abs(e.stateDir); err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "state folder: %w", err)
	}
	if e.catalog, err = catalog.Load(opts.Catalog, descriptors, e.now()); err != nil {
		return nil, err
	}
	e.places = place.New(place.Options{Catalog: e.catalog, Handlers: handlers, Credentials: opts.Credentials, Getenv: func(name string) string { return e.getenv(name) },
		StateDir: e.stateDir, Now: e.now, Log: e.log, Flights: &e.flights})
	e.accounts = account.New(e.account, e.catalog, books{e})
	for binding, fields := range opts.Credentials {
		if err := e.checkCredentials(binding, fields); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Close releases backends and the ledger, and waits for what is being opened
// or listed. Sandboxes live on; the engine is of no use afterwards.
func (e *Engine) Close() error {
	e.flights.Close()
	return errors.Join(e.places.Close(), e.books.close())
}

// Account is the one billed and listed.
func (e *Engine) Account() string { return e.account }

// StateDir is the folder for what is kept on this machine.
func (e *Engine) StateDir() string { return e.stateDir }

// CatalogNotices tells what later catalog folders replaced.
func (e *Engine) CatalogNotices() []string { return e.catalog.Notices }

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
