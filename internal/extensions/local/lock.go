package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// lockWait is how long an operation waits for another one on the same sandbox before it returns busy.
const lockWait = 10 * time.Second

// errBusy is returned by tryLock while another process holds the lock.
var errBusy = errors.New("busy")

// lock takes the sandbox's lock, which is its folder: the lock goes with the sandbox. Closing the file
// releases it. A missing folder is fs.ErrNotExist; one that stays busy is KindConflict.
func (b box) lock(ctx context.Context, wait time.Duration) (*os.File, error) {
	until := time.Now().Add(wait)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := b.tryLock()
		if err == nil || !errors.Is(err, errBusy) {
			return f, err
		}
		if time.Now().After(until) {
			return nil, extensions.Errorf(extensions.KindConflict, "another operation uses %s", b.id).
				WithRemedy("wait for it and try again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (b box) tryLock() (*os.File, error) {
	f, err := os.Open(b.dir)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	// The folder may have been removed, and even re-created, while we waited.
	locked, err1 := f.Stat()
	there, err2 := os.Stat(b.dir)
	if err1 != nil || err2 != nil || !os.SameFile(locked, there) {
		_ = f.Close()
		if errors.Is(err2, fs.ErrNotExist) {
			return nil, err2
		}
		return nil, errBusy
	}
	return f, nil
}

// make creates the folder if needed and takes the lock.
func (b box) make(ctx context.Context) (*os.File, error) {
	for range 5 {
		var f *os.File
		err := os.MkdirAll(b.dir, 0o700)
		if err == nil {
			f, err = b.lock(ctx, lockWait)
		}
		if !errors.Is(err, fs.ErrNotExist) { // the folder, or its empty parent, was removed in between
			return f, err
		}
	}
	return nil, extensions.Errorf(extensions.KindConflict, "the folder of %s keeps being removed", b.id)
}
