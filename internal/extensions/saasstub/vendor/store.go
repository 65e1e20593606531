package vendor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	stateFile    = "state.json"
	lockFile     = "lock"
	lockInterval = 2 * time.Millisecond
)

// state is everything the service knows; it is read and written as a whole.
type state struct {
	// Offset is added to this machine's clock to give the service's.
	Offset    Duration             `json:"offset,omitempty"`
	Objects   map[string]*Object   `json:"objects,omitempty"`   // by ref
	Deleted   map[string]*Object   `json:"deleted,omitempty"`   // ghosts, by ref
	Snapshots map[string]*Snapshot `json:"snapshots,omitempty"` // by ref
	Hits      map[string]int       `json:"hits,omitempty"`      // matching calls by rule
	Calls     map[Op]int64         `json:"calls,omitempty"`
	Free      map[Op]time.Time     `json:"free,omitempty"`  // when the next call is taken
	Heard     []string             `json:"heard,omitempty"` // what objects sent

	script Script // modifies the call that reads it
}

func newState() *state {
	return &state{Objects: map[string]*Object{}, Deleted: map[string]*Object{}, Snapshots: map[string]*Snapshot{},
		Hits: map[string]int{}, Calls: map[Op]int64{}, Free: map[Op]time.Time{}}
}

func (st *state) now() time.Time { return time.Now().Add(time.Duration(st.Offset)).UTC() }

// Vendor is the service in one folder, as its operator sees it.
type Vendor struct {
	dir string
	// turn lets the goroutines of one client wait for each other without polling the file lock.
	turn chan struct{}
}

// At returns the service in dir; it reads and creates nothing yet.
func At(dir string) *Vendor { return &Vendor{dir: dir, turn: make(chan struct{}, 1)} }

// Dir returns the service's folder.
func (v *Vendor) Dir() string { return v.dir }

// locked runs fn while no other process or goroutine reads or writes state.
func (v *Vendor) locked(ctx context.Context, fn func() error) error {
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return err
	}
	l := flock.New(filepath.Join(v.dir, lockFile), flock.SetPermissions(0o600))
	if ok, err := l.TryLockContext(ctx, lockInterval); err != nil || !ok {
		return errors.Join(err, ctx.Err())
	}
	defer func() { _ = l.Close() }() // the lock ends with the descriptor
	return fn()
}

// transact loads the state, ends what is overdue, runs fn, and saves unless fn failed.
func (v *Vendor) transact(ctx context.Context, fn func(*state) error) error {
	return v.locked(ctx, func() error {
		st, err := v.load()
		if err != nil {
			return err
		}
		before, err := json.Marshal(st)
		if err != nil {
			return err
		}
		if err := v.reap(st); err != nil {
			return err
		}
		failed := fn(st)
		if failed != nil {
			return failed
		}
		after, err := json.Marshal(st)
		if err != nil || string(after) == string(before) {
			return err
		}
		return replaceFile(filepath.Join(v.dir, stateFile), after)
	})
}

// update is transact for the operator's own changes.
func (v *Vendor) update(fn func(*state) error) error {
	return v.transact(context.Background(), fn)
}

func (v *Vendor) load() (*state, error) {
	st := newState()
	b, err := os.ReadFile(filepath.Join(v.dir, stateFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(b, st); err != nil {
			return nil, fmt.Errorf("%s in %s: %w", stateFile, v.dir, err)
		}
	}
	return st, nil
}

// replaceFile replaces the content completely; the caller holds the lock.
func replaceFile(path string, b []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
