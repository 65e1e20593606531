package sqlstore

import (
	"context"
	"crypto/rand"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/owned"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// registry knows which holders of intents are alive.
type registry interface {
	// register makes this open ledger a holder until it is released.
	register(ctx context.Context, now time.Time) (registration, error)
	// alive reports whether id is still held; it cleans up after a dead holder if it may.
	alive(ctx context.Context, id ledger.HolderID) (bool, error)
	// sweep removes what dead holders left; failures are ignored.
	sweep(ctx context.Context)
}

// registration is this ledger's own entry in the registry.
type registration interface {
	holder() ledger.HolderID
	release() error
	// left returns how much longer this holder is certain to count as alive.
	left() time.Duration
}

// holdersOf returns the folder of lock files for the database at path. Other databases may lie beside it.
func holdersOf(path string) string {
	return filepath.Join(filepath.Dir(path), "holders", filepath.Base(path))
}

// lockFiles is the registry of one machine: a folder from holdersOf. A file stays locked as long as its
// holder lives; the kernel releases the lock when the process ends, however it ends.
type lockFiles struct {
	folder   string
	readOnly bool
}

// lockFile is a lock file held by this process.
type lockFile struct {
	id   ledger.HolderID
	file *owned.File
}

func (h *lockFile) holder() ledger.HolderID { return h.id }

func (h *lockFile) left() time.Duration { return forever }

const forever = math.MaxInt64

func (h *lockFile) release() error { return h.file.Release() }

func (s *store) Holder(ctx context.Context) (ledger.HolderID, error) {
	if s.writer == nil {
		return "", fault.Errorf(extensions.KindUnsupported, "the ledger %s was opened for reading only", s.url)
	}
	if err := ctx.Err(); err != nil {
		return "", fault.New(fault.Stopped(err), "", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", fault.Errorf(extensions.KindInternal, "the ledger %s is closed", s.url)
	}
	if s.holder != nil {
		return s.holder.holder(), nil
	}
	own, err := s.holders.register(ctx, s.now())
	if err != nil {
		return "", fault.Errorf(extensions.KindUnavailable, "registering as a holder beside %s: %w", s.url, err)
	}
	s.holder = own
	s.holders.sweep(ctx)
	return own.holder(), nil
}

func (s *store) Guard(ctx context.Context) (context.Context, context.CancelFunc) {
	s.mu.Lock()
	own := s.holder
	s.mu.Unlock()
	if own == nil || own.left() == forever {
		return context.WithCancel(ctx)
	}
	return lease.Guard(ctx, own.left, takenForDead(s.url))
}

// takenForDead returns the cause of a Guard that ended.
func takenForDead(address string) error {
	return fault.Errorf(extensions.KindUnavailable,
		"the ledger %s has been unreachable for so long that other runs may consider this one dead",
		address).
		WithRemedy("check that the ledger is running and reachable from this machine, then run again")
}

func (s *store) HolderAlive(ctx context.Context, id ledger.HolderID) (bool, error) {
	alive, err := s.holders.alive(ctx, id)
	if err != nil {
		return false, fault.Errorf(extensions.KindUnavailable, "checking whether %s is alive: %w", id, err)
	}
	return alive, nil
}

// register creates and locks a file under a new name.
func (h lockFiles) register(ctx context.Context, now time.Time) (registration, error) {
	if err := os.MkdirAll(h.folder, 0o700); err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		id := newHolderID(now)
		file, err := owned.TryLock(h.path(id))
		if err != nil {
			return nil, err
		}
		if file != nil {
			return &lockFile{id, file}, nil
		}
		// Somebody looked at the new file before it was locked, and removes it.
	}
	return nil, ctx.Err()
}

// newHolderID returns an unused name. The time in it is for people.
func newHolderID(now time.Time) ledger.HolderID {
	return ledger.HolderID(now.UTC().Format("20060102t150405") + "-" + strings.ToLower(rand.Text()[:12]))
}

func (h lockFiles) path(id ledger.HolderID) string {
	return filepath.Join(h.folder, string(id)+".lock")
}

func (h lockFiles) alive(_ context.Context, id ledger.HolderID) (bool, error) {
	if id == "" || strings.ContainsAny(string(id), `/\`) {
		return false, nil
	}
	if h.readOnly {
		return owned.Locked(h.path(id))
	}
	return owned.Clear(h.path(id))
}

func (h lockFiles) sweep(ctx context.Context) {
	files, _ := filepath.Glob(filepath.Join(h.folder, "*.lock"))
	for _, f := range files {
		_, _ = h.alive(ctx, ledger.HolderID(strings.TrimSuffix(filepath.Base(f), ".lock")))
	}
}
