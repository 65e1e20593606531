// Package life carries out the verbs of a sandbox: plan, create, use, change, snapshot, end. Each verb
// gathers evidence from places and the book, asks package plan, and acts. The ledger is written before
// anything can cost money, and every uncertain outcome is settled.
package life

import (
	"io"
	"log/slog"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/owned"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Options are what a Manager needs. Every field but Rand is required.
type Options struct {
	Account  string
	Catalog  *catalog.Catalog
	Places   *place.Places
	Book     *book.Book
	Scratch  *owned.Scratch
	StateDir string    // keeps data of mirrored workspaces
	Rand     io.Reader // source of ids; nil = crypto/rand
	Log      *slog.Logger
}

// Manager carries out the verbs for one account and one catalog. It is safe for concurrent use.
type Manager struct {
	account  string
	catalog  *catalog.Catalog
	places   *place.Places
	book     *book.Book
	scratch  *owned.Scratch
	stateDir string
	rand     io.Reader
	log      *slog.Logger
	recovery recovery
	planned  sync.Mutex // guards every plan.Together
	looked   sync.Map   // place.Address -> looked: see probeAgain
}

// New makes a Manager. It opens nothing.
func New(o Options) *Manager {
	return &Manager{account: o.Account, catalog: o.Catalog, places: o.Places, book: o.Book, scratch: o.Scratch, stateDir: o.StateDir,
		rand: o.Rand, log: o.Log, recovery: recovery{turn: make(chan struct{}, 1)}}
}

// selfHosted reports that no vendor bills for what runs at a binding.
func (m *Manager) selfHosted(binding string) bool {
	return m.capabilities(binding).SelfHosted()
}

// capabilities returns what a binding can do; of one that the catalog has no more, nothing.
func (m *Manager) capabilities(binding string) extensions.Capabilities {
	b, err := m.catalog.Named(binding)
	if err != nil {
		return extensions.Capabilities{}
	}
	return b.Capabilities
}

// heardOf remembers that a receipt names a ledger.
func (m *Manager) heardOf(rec plan.Receipt) {
	if rec.Ledger != "" {
		sign := "a receipt in the state"
		if rec.ID != "" {
			sign = "the receipt of sandbox " + string(rec.ID)
		}
		m.book.HeardOf(sign)
	}
}

// absent reports an error that proves absence.
func absent(err error) bool { return extensions.IsKind(err, extensions.KindNotFound) }
