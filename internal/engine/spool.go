package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// spoolLedger stands in for a shared ledger that cannot be reached: a ledger of this
// machine alone, in the state folder, that records what is made and ended on
// the user's own places meanwhile. It keeps every promise of a ledger but one:
// nobody elsewhere hears of the names in it. See replay.
type spoolLedger struct {
	ledger.Ledger
	inUse *flock.Flock // shared by all who have it open
}

// Apply changes nothing of what the ledger has, or may have, by now.
func (s *spoolLedger) Apply(ctx context.Context, c ledger.Change) (ledger.Sandbox, error) {
	c.Expect.NoEndReason = true
	return s.Ledger.Apply(ctx, c)
}

func (s *spoolLedger) Close() error { return errors.Join(s.Ledger.Close(), s.inUse.Close()) }

const spoolDir = "spool"

// spoolFolder is that of the ledger's spool on this machine.
func (e *Engine) spoolFolder() string {
	sum := sha256.Sum256([]byte(e.LedgerURL()))
	return filepath.Join(e.stateDir, spoolDir, hex.EncodeToString(sum[:8]))
}

// spool opens the stand-in for writing. Unless makeIt it is nil where there is
// none.
func (e *Engine) spool(ctx context.Context, makeIt bool) (ledger.Ledger, error) {
	folder := e.spoolFolder()
	if makeIt {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, extensions.Errorf(extensions.KindUnavailable, "making the spool: %w", err)
		}
	}
	return e.openSpool(ctx, folder, false)
}

// openSpool opens the one in folder, once; nil where there is none.
func (e *Engine) openSpool(ctx context.Context, folder string, readOnly bool) (ledger.Ledger, error) {
	if !ledger.Shared(e.ledgerURL()) {
		return nil, nil
	}
	e.books.mu.Lock()
	defer e.books.mu.Unlock()
	switch {
	case e.books.closed:
		return nil, flight.ErrClosed
	case e.books.spool != nil:
		return e.books.spool, nil
	case readOnly && e.books.spoolRead != nil:
		return e.books.spoolRead, nil
	}
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	inUse := flock.New(folder + ".lock")
	if ok, err := inUse.TryRLock(); err != nil || !ok {
		return nil, errors.Join(extensions.Errorf(extensions.KindUnavailable, "the spool %s is being put away: %w", folder, err), inUse.Close())
	}
	l, err := ledger.Open(ctx, ledger.DefaultURL(folder), ledger.Options{ReadOnly: readOnly, Now: e.now})
	if err != nil {
		return nil, errors.Join(err, inUse.Close())
	}
	kept := &spoolLedger{l, inUse}
	if readOnly {
		e.books.spoolRead = kept
	} else {
		e.books.spool = kept
	}
	return kept, nil
}

// inSpool finds a sandbox that the next replay is about.
func (e *Engine) inSpool(ctx context.Context, id ID) (ledger.Ledger, ledger.Sandbox, bool) {
	s, err := e.openSpool(ctx, e.spoolFolder(), true)
	if err != nil || s == nil {
		return nil, ledger.Sandbox{}, false
	}
	row, err := s.Get(ctx, id)
	return s, row, err == nil && row.EndReason != movedOn
}

// spooled finds a sandbox that only this machine knows of so far, for reading.
func (e *Engine) spooled(ctx context.Context, id ID) (ledger.Ledger, ledger.Sandbox, bool) {
	s, row, ok := e.inSpool(ctx, id)
	return s, row, ok && !handedOver(row)
}

// spooledToChange is spooled for writing.
func (e *Engine) spooledToChange(ctx context.Context, id ID) (ledger.Ledger, ledger.Sandbox, bool) {
	_, row, ok := e.spooled(ctx, id)
	if !ok {
		return nil, row, false
	}
	s, err := e.spool(ctx, false)
	if err != nil || s == nil {
		return nil, row, false
	}
	row, err = s.Get(ctx, id)
	return s, row, err == nil && !handedOver(row)
}

// notReached tells a shared ledger that does not answer from one that refuses.
func (e *Engine) notReached(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && ledger.Shared(e.ledgerURL()) &&
		(extensions.IsKind(err, extensions.KindUnavailable) || extensions.IsKind(err, extensions.KindTimeout))
}

// orSpool decides about a create whose ledger gave err: nil goes on with l; one
// that cannot be reached is stood in for where nobody sends a bill. All else
// fails closed: what costs money is first recorded where the others see it.
func (e *Engine) orSpool(ctx context.Context, l ledger.Ledger, err error, p *prepared, notify Notify) (ledger.Ledger, error) {
	if !e.notReached(ctx, err) {
		return l, err
	}
	if err := e.onOwnPlaces(p, err); err != nil {
		return nil, err
	}
	s, serr := e.spool(ctx, true)
	if serr == nil {
		serr = e.recoverIn(ctx, s, notify)
	}
	if serr != nil {
		return nil, serr
	}
	notify.tell("The ledger cannot be reached", "Sandboxes on places of your own are recorded in %s for now, and in the ledger by the next run that reaches it. "+
		"Until then their names are taken on this machine alone: %s", e.spoolFolder(), err.Error())
	return s, e.recoverAgain(ctx)
}

// onOwnPlaces keeps a create away from where a bill is sent: down says why the
// ledger cannot be written.
func (e *Engine) onOwnPlaces(p *prepared, down error) error {
	if chosen := p.decision.Chosen; !selfHosted(chosen) {
		return extensions.Errorf(extensions.KindOf(down), "nothing was asked of %s, which sends a bill, because the ledger cannot be written: %w", chosen.ID(), down).
			WithRemedy("%s", extensions.RemedyOf(down))
	}
	p.decision.Fallbacks = slices.DeleteFunc(slices.Clone(p.decision.Fallbacks), func(c *route.Candidate) bool { return !selfHosted(c) })
	return nil
}

// selfHosted reports a place of the user's own: nobody sends a bill.
func selfHosted(c *route.Candidate) bool {
	return c.Capabilities.PricingModel == extensions.PricingSelfHosted
}

// retire puts away a spool that was brought into the ledger and holds nothing
// more to be done, unless somebody has it open. This engine is closed.
func (e *Engine) retire() error {
	if !e.books.replayed.Load() {
		return nil
	}
	folder := e.spoolFolder()
	alone := flock.New(folder + ".lock")
	ok, err := alone.TryLock()
	if err == nil && ok {
		err = allOver(folder)
		if err == nil {
			err = os.Rename(folder, folder+"-"+e.now().UTC().Format("20060102T150405.000000000"))
		}
		if errors.Is(err, errNotOver) || errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return errors.Join(err, alone.Close())
}

var errNotOver = errors.New("something is left to be done")

func allOver(folder string) error {
	ctx := context.Background()
	l, err := ledger.Open(ctx, ledger.DefaultURL(folder), ledger.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	rows, err := l.List(ctx, ledger.Filter{Live: true})
	if err == nil && len(rows) > 0 {
		err = errNotOver
	}
	return errors.Join(err, l.Close())
}
