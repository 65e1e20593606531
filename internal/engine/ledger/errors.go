package ledger

import (
	"errors"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
)

// NameTaken carries the sandbox that holds the name. It is wrapped in KindConflict; use errors.As.
type NameTaken struct{ Existing Sandbox }

func (e *NameTaken) Error() string {
	return fmt.Sprintf("the name %q of account %q is taken by %s (%s since %s)",
		e.Existing.Name, e.Existing.Account, e.Existing.ID, lifecycle.Shown(e.Existing.State),
		e.Existing.UpdatedAt.Format("2006-01-02 15:04:05Z"))
}

// Stale carries the current row where it differs from the expected one. It is wrapped in KindConflict.
type Stale struct {
	Current Sandbox // zero for a snapshot
	Why     string
}

func (e *Stale) Error() string { return "another run changed it meanwhile: " + e.Why }

// Busy carries the operation that a living holder has under way. It is wrapped in KindConflict.
type Busy struct{ Intent Intent }

func (e *Busy) Error() string {
	return fmt.Sprintf("another run is busy with %s: %s since %s (holder %s)",
		e.Intent.Subject, e.Intent.Kind, e.Intent.StartedAt.Format("15:04:05Z"), e.Intent.Holder)
}

// ErrOldSchema is in a reader's error when the ledger has an older schema, which the next writer upgrades.
var ErrOldSchema = errors.New("its schema is older")
