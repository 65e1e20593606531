package life

import (
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// unresolvedGrace is how long after its native deadline a place that cannot be asked is trusted to have
// ended a sandbox.
const unresolvedGrace = 5 * time.Minute

// neverKnown reports that waiting longer reveals nothing: the answer was lost, so there is no name; the
// place finds nothing by id; and the deadline sent with the request, which the place enforces, is well
// past.
func (m *Manager) neverKnown(b *place.Backend, row ledger.Sandbox, err error) bool {
	return extensions.IsKind(err, extensions.KindIndeterminate) && row.Handle.Ref == "" &&
		b.Binding.Descriptor.Find.Strength == extensions.FindNone && b.Binding.Capabilities.Expiry == extensions.ExpiryNative &&
		!row.ExpiresAt.IsZero() && m.book.Now().After(row.SentDeadline().Add(unresolvedGrace))
}

// elsewhere reports that err concerns a sandbox that only another machine, or another account's credential, can end, and that
// its deadline is not yet so long past that its place can be trusted to have done so.
func (m *Manager) elsewhere(row ledger.Sandbox, err error) bool {
	return errors.Is(err, extensions.ErrElsewhere) && !m.endedElsewhere(row, err)
}

// endedElsewhere reports that a sandbox of another machine or account has ended: its deadline, which its place
// enforces itself in the sandbox's mode, is well past. The machine may no longer exist, so nobody else could
// settle the sandbox.
func (m *Manager) endedElsewhere(row ledger.Sandbox, err error) bool {
	enforced := m.enforced(row.Extension, row.Mode)
	if row.Mode == "" { // a receipt does not tell
		enforced = enforced && m.enforced(row.Extension, ledger.Paused)
	}
	return errors.Is(err, extensions.ErrElsewhere) && enforced && !row.ExpiresAt.IsZero() &&
		m.book.Now().After(row.ExpiresAt.Add(unresolvedGrace))
}

// enforced reports that a place itself ends a sandbox in a mode at its deadline.
func (m *Manager) enforced(binding string, mode ledger.Mode) bool {
	by := extensions.Expiry(m.expiry(binding, mode))
	return by == extensions.ExpiryHost || by == extensions.ExpiryNative
}

// found records that the credential in use shows a sandbox, so that its word counts from now on, and no former one's.
func found(b *place.Backend, patch *ledger.Patch) {
	identity := b.Identity()
	patch.Identity = &identity
}

// rented reports that a binding's sandboxes are at a vendor: one of another account costs what nobody here sees, so it is told.
func (m *Manager) rented(binding string) bool {
	b, err := m.catalog.Named(binding)
	return err == nil && b.Descriptor.RunsAt(extensions.PlaceAccount)
}

func unresolvedNotice(row ledger.Sandbox) notice.Notice {
	return notice.Notice{Summary: "It is unknown whether it was created",
		Detail: fmt.Sprintf("The answer to the create of %s was lost, and %s cannot look it up. Its deadline there was %s. "+
			"The ledger released its hold and records it as exposure: compare it with the vendor's bill.", row.ID, candidateName(row),
			row.SentDeadline().UTC().Format(time.RFC3339))}
}
