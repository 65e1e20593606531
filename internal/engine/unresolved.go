package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// unresolvedEnd is why a sandbox ended of which nobody will ever know whether
// it was made.
const unresolvedEnd = "unresolved"

// unresolvedGrace is how long after its native deadline a place is trusted to
// have ended a sandbox that it cannot be asked for.
const unresolvedGrace = 5 * time.Minute

// neverKnown reports that waiting longer tells no more: what a lost answer may
// have made has no handle, its place finds nothing by id, and the deadline that
// was sent with it, which the place enforces, is well over.
func (e *Engine) neverKnown(b *place.Backend, row ledger.Sandbox, err error) bool {
	return extensions.IsKind(err, extensions.KindIndeterminate) && row.Handle.IsZero() &&
		b.Binding.Descriptor.Find.Strength == extensions.FindNone && b.Binding.Capabilities.Expiry == extensions.ExpiryNative &&
		!row.ExpiresAt.IsZero() && e.now().After(row.ExpiresAt.Add(unresolvedGrace))
}

// elsewhere reports that err is about a sandbox of another machine, which only
// that one can end, and not yet so long after its deadline that it can be
// trusted to have done so.
func (e *Engine) elsewhere(row ledger.Sandbox, err error) bool {
	return errors.Is(err, extensions.ErrElsewhere) && !e.endedElsewhere(row, err)
}

// endedElsewhere reports that a sandbox of another machine is over: its deadline,
// which that machine enforces by itself, is well past. Such a machine may not
// exist any more, and nobody else could ever settle it.
func (e *Engine) endedElsewhere(row ledger.Sandbox, err error) bool {
	b, unknown := e.catalog.Named(row.Extension)
	return errors.Is(err, extensions.ErrElsewhere) && unknown == nil &&
		(b.Capabilities.Expiry == extensions.ExpiryHost || b.Capabilities.Expiry == extensions.ExpiryNative) &&
		!row.ExpiresAt.IsZero() && e.now().After(row.ExpiresAt.Add(unresolvedGrace))
}

func unresolvedNotice(row ledger.Sandbox) Notice {
	return Notice{Summary: "It will never be known whether it was made",
		Detail: fmt.Sprintf("The answer to the create of %s was lost, and %s cannot be asked for it. Its deadline there was %s. "+
			"What was set aside is released and kept in the ledger as exposure: compare it with the vendor's bill.", row.ID, candidateName(row), row.ExpiresAt.UTC().Format(time.RFC3339))}
}
