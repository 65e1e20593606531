// Package kept has the snapshots that a vendor keeps under names of ours. They have no labels, so a name says the snapshot's id and
// its sandbox's. A backend embeds Shelf, which implements extensions.Snapshotter but for the taking.
package kept

import (
	"context"
	"regexp"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Kept is a snapshot as the vendor tells of it.
type Kept struct {
	Ref                  string
	Names                []string
	CreatedAt, ExpiresAt time.Time
}

// Shelf has the snapshots of one account.
type Shelf struct {
	Vendor, Handler string
	Version         int // of handles
	Kind            extensions.SnapshotKind
	// Ref is the form of the vendor's references; the first group of Name is the snapshot's id, the second its sandbox's.
	Ref, Name *regexp.Regexp
	// Settle is how long a list can lack a snapshot.
	Settle time.Duration
	// List shows the snapshots with an id in their name, perhaps others too; Get reads one by its reference, where KindNotFound is
	// the vendor's own word; Drop deletes one.
	List func(ctx context.Context, id string, show func(Kept)) error
	Get  func(ctx context.Context, ref string) (Kept, error)
	Drop func(ctx context.Context, ref string) error
	// Classify is the adapter's, for extensions.Failed; it may be nil.
	Classify func(error) *extensions.Error
}

// CheckID refuses, with KindInvalid, what is no snapshot's id.
func CheckID(id string) error {
	if extensions.ValidSnapshotID(id) {
		return nil
	}
	return extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot id", extensions.Clean(id, 80))
}

// Ours reads a snapshot of ours.
func (b *Shelf) Ours(k Kept) (s extensions.Snapshot, ok bool) {
	for _, name := range k.Names {
		if m := b.Name.FindStringSubmatch(name); m != nil && b.Ref.MatchString(k.Ref) {
			return extensions.Snapshot{SandboxID: extensions.ID(m[2]), Kind: b.Kind, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt,
				Handle: extensions.SnapshotHandle{Extension: b.Handler, Version: b.Version, ID: m[1], Ref: k.Ref}}, true
		}
	}
	return s, false
}

// FindSnapshot implements extensions.Snapshotter.
func (b *Shelf) FindSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	s, err := b.Listed(ctx, id)
	return s, extensions.Failed("find-snapshot", "", err, b.Classify)
}

// Listed returns the snapshot with an id; KindIndeterminate = it is not listed.
func (b *Shelf) Listed(ctx context.Context, id string) (found extensions.Snapshot, err error) {
	if err := CheckID(id); err != nil {
		return found, err
	}
	err = b.List(ctx, id, func(k Kept) {
		if s, ok := b.Ours(k); ok && s.Handle.ID == id {
			found = s
		}
	})
	if err == nil && found.Handle.ID == "" {
		err = extensions.Errorf(extensions.KindIndeterminate, "%s does not list it; a new snapshot can be missing for %s", b.Vendor, b.Settle)
	}
	return found, err
}

// Check refuses a handle that is none of this shelf's.
func (b *Shelf) Check(h extensions.SnapshotHandle) error {
	if h.Extension != b.Handler || h.Version != b.Version || !extensions.ValidSnapshotID(h.ID) || !b.Ref.MatchString(h.Ref) {
		return extensions.Errorf(extensions.KindInvalid, "this is not the handle of a snapshot of %s", b.Vendor)
	}
	return nil
}

// StatSnapshot implements extensions.Snapshotter.
func (b *Shelf) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
	s, err := b.stat(ctx, h)
	return s, extensions.Failed("stat-snapshot", "", err, b.Classify)
}

func (b *Shelf) stat(ctx context.Context, h extensions.SnapshotHandle) (s extensions.Snapshot, err error) {
	if err := b.Check(h); err != nil {
		return s, err
	}
	k, err := b.Get(ctx, h.Ref)
	if err != nil {
		return s, err
	}
	if s, ok := b.Ours(k); ok && s.Handle.ID == h.ID {
		return s, nil
	}
	return s, extensions.Errorf(extensions.KindConflict, "the snapshot %s at %s does not carry this snapshot's id", h.Ref, b.Vendor).
		WithRemedy("check it at %s; sandboxer does not own it", b.Vendor)
}

// DeleteSnapshot implements extensions.Snapshotter.
func (b *Shelf) DeleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	_, err := b.stat(ctx, h)
	if err == nil {
		err = b.Drop(ctx, h.Ref)
	}
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return extensions.Failed("delete-snapshot", "", err, b.Classify)
}
