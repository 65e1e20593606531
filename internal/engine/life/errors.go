package life

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ErrLedgerUnusable is in the error of a change that no ledger could record.
var ErrLedgerUnusable = errors.New("the ledger cannot record it")

// ErrOtherMode is in the error of a create or an adoption whose sandbox is whole, but not in the mode that was asked
// for.
var ErrOtherMode = errors.New("its mode could not be set")

// fromLedger reports a failure of the ledger itself rather than of a place.
func fromLedger(err error) bool {
	var x *extensions.Error
	return errors.As(err, &x) && x.Op == "ledger"
}

// unrecorded reports that the ledger cannot be reached, read or written, as opposed to a ledger that
// refuses (a taken name, missing funds) and to a caller who gave up.
func unrecorded(err error) bool {
	switch extensions.KindOf(err) {
	case extensions.KindConflict, extensions.KindNotFound, extensions.KindExhausted, extensions.KindInterrupted:
		return false
	}
	return fromLedger(err)
}

// failClosed refuses a change because of down, a failure of the ledger; left describes the resulting
// state. That the caller's time was up says little of the ledger.
func failClosed(down error, left string) *extensions.Error {
	if extensions.IsKind(down, extensions.KindTimeout) {
		return extensions.Errorf(extensions.KindTimeout, "%s, because the time for it was up: %w", left, down).
			WithRemedy("run again with more time; if that does not help, check the ledger with `sandboxer ledger verify`")
	}
	err := extensions.Errorf(extensions.KindOf(down), "%s, because %w: %w", left, ErrLedgerUnusable, down)
	if next := extensions.RemedyOf(down); next != "" {
		return err.WithRemedy("%s", next)
	}
	return err.WithRemedy("run again once the ledger can be read and written: check with `sandboxer ledger verify`")
}

// notMade returns the error of a create that asked no place for anything.
func notMade(err error) error {
	if !unrecorded(err) {
		return err
	}
	out := failClosed(err, "nothing was created")
	if out.Kind == extensions.KindTimeout {
		return out.WithRemedy("set a longer timeouts.create, and %s", out.Remedy)
	}
	return out
}

// leftAlone returns the error of a change to a live sandbox that asked no place for anything.
func leftAlone(row ledger.Sandbox, err error) error {
	if !unrecorded(err) {
		return err
	}
	out := failClosed(err, "it was not changed")
	out.ID = row.ID
	return out
}

// notReplaced refuses to end what is to be re-created; down is why the ledger could not record that.
func notReplaced(row ledger.Sandbox, down error) error {
	err := failClosed(down, "it was not replaced")
	err.ID = row.ID
	return err.WithRemedy("%s; then apply again. To end it without a replacement, destroy it: that needs no ledger", err.Remedy)
}

// GivenUp returns err as the caller with context ctx must see it. If ctx was canceled (Ctrl-C), a failure that
// this explains becomes KindInterrupted, however inner steps classified it, and its remedy is to repeat. If
// ctx's deadline passed, a missing answer becomes KindTimeout. An error with another cause, such as a taken
// name, stays.
func GivenUp(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	kind := extensions.KindOf(err)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if kind == extensions.KindIndeterminate || kind == extensions.KindInternal {
			return extensions.Errorf(extensions.KindTimeout, "it was not done in time: %w", err)
		}
		return err
	}
	switch kind {
	case extensions.KindTimeout, extensions.KindIndeterminate, extensions.KindUnreachable, extensions.KindUnavailable, extensions.KindInternal:
	case extensions.KindInterrupted:
		if extensions.RemedyOf(err) != "" {
			return err
		}
	default:
		return err
	}
	return extensions.Errorf(extensions.KindInterrupted, "it was interrupted before it was done: %w", err).
		WithRemedy("run the same command again: it continues where this run stopped")
}
