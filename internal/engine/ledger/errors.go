package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// NameTaken says who has the name. It arrives as KindConflict; use errors.As.
type NameTaken struct{ Existing Sandbox }

func (e *NameTaken) Error() string {
	return fmt.Sprintf("the name %q of account %q is taken by %s (%s since %s)",
		e.Existing.Name, e.Existing.Account, e.Existing.ID, lifecycle.Shown(e.Existing.State), e.Existing.UpdatedAt.Format("2006-01-02 15:04:05Z"))
}

// Stale says that a row was not as expected, and how it is. It arrives as KindConflict.
type Stale struct {
	Current Sandbox // zero for a snapshot
	Why     string
}

func (e *Stale) Error() string { return "changed by someone else meanwhile: " + e.Why }

// Busy says which operation of a living holder is under way. It arrives as KindConflict.
type Busy struct{ Intent Intent }

func (e *Busy) Error() string {
	return fmt.Sprintf("another run is busy with %s: %s since %s (holder %s)",
		e.Intent.Subject, e.Intent.Kind, e.Intent.StartedAt.Format("15:04:05Z"), e.Intent.Holder)
}

func failure(kind extensions.Kind, id string, err error) *extensions.Error {
	return &extensions.Error{Kind: kind, Op: "ledger", ID: extensions.ID(id), Err: err}
}

// stopped is the kind of an error that a context may have caused: of a deadline, of
// a caller who gave up, or neither.
func stopped(err error) extensions.Kind {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return extensions.KindTimeout
	case errors.Is(err, context.Canceled):
		return extensions.KindInterrupted
	}
	return extensions.KindInternal
}

func failuref(kind extensions.Kind, format string, args ...any) *extensions.Error {
	e := extensions.Errorf(kind, format, args...)
	e.Op = "ledger"
	return e
}
