// Package fault makes the errors of a ledger.
package fault

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// New returns an error of the ledger about a sandbox or snapshot, "" for none.
func New(kind extensions.Kind, id string, err error) *extensions.Error {
	return &extensions.Error{Kind: kind, Op: "ledger", ID: extensions.ID(id), Err: err}
}

// Stopped returns the kind of an error that a context may have caused: a deadline, a caller who gave up, or neither.
func Stopped(err error) extensions.Kind {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return extensions.KindTimeout
	case errors.Is(err, context.Canceled):
		return extensions.KindInterrupted
	}
	return extensions.KindInternal
}

// Errorf returns an error of the ledger, formatted as by fmt.Errorf.
func Errorf(kind extensions.Kind, format string, args ...any) *extensions.Error {
	e := extensions.Errorf(kind, format, args...)
	e.Op = "ledger"
	return e
}
