package engine

import (
	"errors"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ErrLedgerUnusable is in the error of what no ledger could record.
var ErrLedgerUnusable = errors.New("the ledger cannot record it")

// fromLedger tells the ledger's own failures from a place's.
func fromLedger(err error) bool {
	var x *extensions.Error
	return errors.As(err, &x) && x.Op == "ledger"
}

// unrecorded tells a ledger that cannot be reached, read or written from one
// that answers: that a name is taken, that there are no funds.
func unrecorded(err error) bool {
	switch extensions.KindOf(err) {
	case extensions.KindUnavailable, extensions.KindTimeout, extensions.KindIndeterminate, extensions.KindInternal, extensions.KindUnauthorized, extensions.KindUnsupported:
		return fromLedger(err)
	}
	return false
}

// failClosed is the refusal of a change that down, of the ledger, left undone;
// left says how things are.
func failClosed(down error, left string) *extensions.Error {
	err := extensions.Errorf(extensions.KindOf(down), "%s, because %w: %w", left, ErrLedgerUnusable, down)
	if next := extensions.RemedyOf(down); next != "" {
		return err.WithRemedy("%s", next)
	}
	return err.WithRemedy("run again when the ledger can be read and written: sandboxer ledger verify")
}

// notMade is err of a create that has asked no place to make anything.
func notMade(err error) error {
	if !unrecorded(err) {
		return err
	}
	return failClosed(err, "no place was asked to make anything")
}

// leftAlone is err of a change of a live sandbox that no place was asked for.
func leftAlone(row ledger.Sandbox, err error) error {
	if !unrecorded(err) {
		return err
	}
	out := failClosed(err, fmt.Sprintf("sandbox %s (%s) was left as it is", row.ID, row.Name))
	out.ID = row.ID
	return out
}

// notReplaced refuses to end what is to be made anew: down is why the ledger
// could not record that.
func notReplaced(row ledger.Sandbox, down error) error {
	err := failClosed(down, fmt.Sprintf("sandbox %s (%s) was left as it is, and not replaced", row.ID, row.Name))
	err.ID = row.ID
	return err.WithRemedy("%s; then apply again. To end it without another in its place, destroy it: that needs no ledger", err.Remedy)
}
