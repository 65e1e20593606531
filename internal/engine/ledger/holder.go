package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/owned"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// registry knows which holders of intents live.
type registry interface {
	// register makes this opened ledger a holder, until released.
	register(ctx context.Context, now time.Time) (registration, error)
	// alive reports whether id is still held, and cleans up after a dead one
	// where it may.
	alive(ctx context.Context, id HolderID) (bool, error)
	// sweep removes what dead holders left; what cannot be removed stays.
	sweep(ctx context.Context)
}

// registration is this ledger's own.
type registration interface {
	holder() HolderID
	release() error
	// left is how much longer it is certain to count as alive.
	left() time.Duration
}

// holdersOf is the folder with the lock files of the database at path, which may
// have others beside it.
func holdersOf(path string) string {
	return filepath.Join(filepath.Dir(path), "holders", filepath.Base(path))
}

// lockFiles is the registry of one machine: a folder of holdersOf. A
// file is locked as long as its holder lives: the kernel ends the lock with
// the process, however it ends.
type lockFiles struct {
	folder   string
	readOnly bool
}

// heldFile is a lock file held by this process.
type heldFile struct {
	id   HolderID
	file *owned.File
}

func (h *heldFile) holder() HolderID { return h.id }

func (h *heldFile) left() time.Duration { return forever }

const forever = math.MaxInt64

func (h *heldFile) release() error { return h.file.Release() }

func (s *store) Holder(ctx context.Context) (HolderID, error) {
	if s.writer == nil {
		return "", failuref(extensions.KindUnsupported, "the ledger %s was opened for reading only", s.url)
	}
	if err := ctx.Err(); err != nil {
		return "", failure(stopped(err), "", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", failuref(extensions.KindInternal, "the ledger %s is closed", s.url)
	}
	if s.holder != nil {
		return s.holder.holder(), nil
	}
	held, err := s.holders.register(ctx, s.now())
	if err != nil {
		return "", failuref(extensions.KindUnavailable, "registering as a holder beside %s: %w", s.url, err)
	}
	s.holder = held
	s.holders.sweep(ctx)
	return held.holder(), nil
}

func (s *store) Guard(ctx context.Context) (context.Context, context.CancelFunc) {
	s.mu.Lock()
	held := s.holder
	s.mu.Unlock()
	if held == nil || held.left() == forever {
		return context.WithCancel(ctx)
	}
	return lease.Guard(ctx, held.left, takenForDead(s.url))
}

// takenForDead is why a Guard ended.
func takenForDead(address string) error {
	return failuref(extensions.KindUnavailable, "the ledger %s was not reached for so long that others may take this run for dead", address).
		WithRemedy("check that the ledger runs and can be reached from here, then run again")
}

func (s *store) HolderAlive(ctx context.Context, id HolderID) (bool, error) {
	alive, err := s.holders.alive(ctx, id)
	if err != nil {
		return false, failuref(extensions.KindUnavailable, "looking whether %s lives: %w", id, err)
	}
	return alive, nil
}

// register makes and locks a file of a new name.
func (h lockFiles) register(ctx context.Context, now time.Time) (registration, error) {
	if err := os.MkdirAll(h.folder, 0o700); err != nil {
		return nil, err
	}
	id := newHolderID(now)
	file, err := owned.Hold(ctx, h.path(id))
	if err != nil {
		return nil, err
	}
	return &heldFile{id, file}, nil
}

// newHolderID draws a name that was never used. The time in it is for people.
func newHolderID(now time.Time) HolderID {
	return HolderID(now.UTC().Format("20060102t150405") + "-" + strings.ToLower(rand.Text()[:12]))
}

func (h lockFiles) path(id HolderID) string { return filepath.Join(h.folder, string(id)+".lock") }

func (h lockFiles) alive(_ context.Context, id HolderID) (bool, error) {
	if id == "" || strings.ContainsAny(string(id), `/\`) {
		return false, nil
	}
	held, err := owned.Held(h.path(id))
	if held || err != nil || h.readOnly {
		return held, err
	}
	if err := os.Remove(h.path(id)); !errors.Is(err, fs.ErrNotExist) { // names are never used again
		return false, err
	}
	return false, nil
}

func (h lockFiles) sweep(ctx context.Context) {
	files, _ := filepath.Glob(filepath.Join(h.folder, "*.lock"))
	for _, f := range files {
		_, _ = h.alive(ctx, HolderID(strings.TrimSuffix(filepath.Base(f), ".lock")))
	}
}
