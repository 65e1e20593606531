package life

import (
	"context"
	"io"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// carrier sends a snapshot from the place that keeps it to the one that restores it, through this process, as it is
// read.
type carrier struct {
	from *place.Backend
	at   place.Address
	kept extensions.Snapshot

	mu     sync.Mutex
	failed error // of the last reading, if that was not given up by its reader
}

// carry prepares the snapshot that a sandbox starts from, if another place keeps it. It fails before anything is
// made if that place does not answer, or does not have it.
func (m *Manager) carry(ctx context.Context, account string, s ledger.Snapshot, cand *route.Candidate) (*carrier, error) {
	c := &carrier{at: keptAt(s)}
	c.at.Account = account // another account's it does not show
	var err error
	if c.from, err = m.places.Open(ctx, c.at); err == nil {
		c.kept, err = c.from.StatSnapshot(ctx, s.Handle)
	}
	m.places.Answered(c.at, err)
	if err != nil {
		return nil, notCarried(s.ID, c.at, cand, err)
	}
	c.kept.Digest = s.Digest // what was recorded when it was taken
	return c, nil
}

func notCarried(id string, at place.Address, cand *route.Candidate, err error) error {
	out := extensions.Errorf(extensions.KindOf(err), "snapshot %s, which %s keeps, could not be read to restore it at %s: %w", id,
		at, cand.ID(), err)
	return extensions.AtField("from_snapshot", out.WithRemedy("make that place reachable and run again, or start from another snapshot"))
}

// Open implements extensions.SnapshotSource. Closing the stream ends the reading.
func (c *carrier) Open(ctx context.Context) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	s := &carried{PipeReader: r, of: c, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		err := c.from.ReadSnapshot(ctx, c.kept.Handle, w)
		c.note(s, err)
		_ = w.CloseWithError(err)
	}()
	return s, nil
}

func (c *carrier) note(s *carried, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed = err; s.closed {
		c.failed = nil
	}
}

// lost returns how the last reading failed at the place that keeps the snapshot.
func (c *carrier) lost() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Digest implements extensions.SnapshotSource.
func (c *carrier) Digest() string { return c.kept.Digest }

// Kind implements extensions.SnapshotSource.
func (c *carrier) Kind() extensions.SnapshotKind { return c.kept.Kind }

// carried is one reading.
type carried struct {
	*io.PipeReader
	of     *carrier
	cancel context.CancelFunc
	ended  chan struct{}
	closed bool // guarded by the carrier's mu
}

// Close gives the reading up, if it has not ended, and returns once it has.
func (s *carried) Close() error {
	s.of.mu.Lock()
	s.closed = true
	s.of.mu.Unlock()
	s.cancel()
	err := s.PipeReader.Close()
	<-s.ended
	return err
}
