package sqlstore

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// writerLock is a file beside the database at which writers queue. SQLite polls its own lock and may
// starve one of several busy processes; waiting in the kernel is fair.
type writerLock struct {
	path    string
	timeout time.Duration
	turn    chan struct{} // queue of this process's goroutines, first come first served
}

func newWriterLock(path string, timeout time.Duration) *writerLock {
	return &writerLock{path: path, timeout: timeout, turn: make(chan struct{}, 1)}
}

// acquire waits for the lock until the context ends or the timeout passes.
func (l *writerLock) acquire(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, l.gaveUp(ctx)
	}
	file := flock.New(l.path)
	done := func() {
		_ = file.Close()
		<-l.turn
	}
	if ok, err := file.TryLock(); err != nil || ok {
		if err != nil {
			done()
			return nil, fault.Errorf(extensions.KindUnavailable, "locking %s: %w", l.path, err)
		}
		return done, nil
	}
	got := make(chan error, 1)
	go func() { got <- lockUninterrupted(file) }()
	select {
	case err := <-got:
		if err != nil {
			done()
			return nil, fault.Errorf(extensions.KindUnavailable, "locking %s: %w", l.path, err)
		}
		return done, nil
	case <-ctx.Done():
		go func() { // a wait in the kernel's queue cannot be cancelled
			defer done()
			<-got //nolint:errcheck // nobody waits for the lock any more
		}()
		return nil, l.gaveUp(ctx)
	}
}

func lockUninterrupted(file *flock.Flock) error {
	for {
		if err := file.Lock(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (l *writerLock) gaveUp(ctx context.Context) error {
	return fault.Errorf(extensions.KindUnavailable, "another process has the ledger locked (%s): %w", l.path, ctx.Err()).
		WithRemedy("wait for the other run to finish, then try again")
}
