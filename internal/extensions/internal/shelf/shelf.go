// Package shelf keeps the snapshots of one account at a place that has no labels for them: a snapshot's name says its id and
// its sandbox's. A list of names may lag, so it finds snapshots and proves nothing absent.
package shelf

import (
	"context"
	"regexp"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// name is that of a snapshot, after a part of the place's own and before its version.
var name = regexp.MustCompile(`(?:^|/)(snp-[a-z2-7]{20})[:-](sbx-[a-z2-7]{20})(?::[^/]*)?$`)

const takingPause = 2 * time.Second

// Named is one name that the place lists.
type Named struct {
	Name, Ref string    // Ref is the place's own name of what has it
	At        time.Time // when it was made; zero = not told
}

// Shelf is one account at such a place.
type Shelf struct {
	Vendor, Handler string
	Version         int            // of handles
	Ref             *regexp.Regexp // the form of the place's own names
	Declared        extensions.Snapshots
	// Each shows names to until, page by page, until that is true: those of a snapshot's id or, with a ref, those of one
	// snapshot. It may show others. With a ref, KindNotFound is the place's word that it has no such snapshot.
	Each func(ctx context.Context, id, ref string, until func(Named) bool) error
	// Take makes a snapshot of a sandbox that has none of this id, under a name that the id begins.
	Take func(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (Named, error)
	// Sure says that Take, done again, makes no other one and waits until the first is whole; so no list is asked before it.
	Sure bool
	// Taking names a sandbox of which a snapshot is being taken, "" = none: until then Each may lack what was begun. nil = a
	// snapshot that was begun is listed as soon as any other.
	Taking func(ctx context.Context) (string, error)
	// Drop deletes one. One that is gone is KindNotFound.
	Drop func(ctx context.Context, ref string) error
}

// read returns the snapshot of ours that has a name.
func (s *Shelf) read(n Named) (found extensions.Snapshot, ok bool) {
	m := name.FindStringSubmatch(n.Name)
	if m == nil || !s.Ref.MatchString(n.Ref) {
		return found, false
	}
	found = extensions.Snapshot{SandboxID: extensions.ID(m[2]), Kind: s.Declared.Kinds[0], CreatedAt: n.At,
		Handle: extensions.SnapshotHandle{Extension: s.Handler, Version: s.Version, ID: m[1], Ref: n.Ref}}
	if s.Declared.Expires > 0 {
		found.ExpiresAt = n.At.Add(s.Declared.Expires)
	}
	return found, true
}

// Check refuses what is not the handle of a snapshot of this place.
func (s *Shelf) Check(h extensions.SnapshotHandle) error {
	if err := h.Check(s.Handler, s.Version); err != nil {
		return err
	}
	if !s.Ref.MatchString(h.Ref) {
		return extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot of %s", extensions.Clean(h.Ref, 80), s.Vendor)
	}
	return nil
}

// CheckFrom is Check for what a new sandbox starts from; nil = from nothing. One without a handle is looked for later.
func (s *Shelf) CheckFrom(ref *extensions.SnapshotRef) error {
	if ref == nil || ref.Handle.Extension == "" {
		return nil
	}
	return extensions.AtField("from_snapshot", s.Check(ref.Handle))
}

// Snapshot implements extensions.Snapshotter.
func (s *Shelf) Snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (extensions.Snapshot, error) {
	made, err := s.snapshot(ctx, h, spec)
	return made, extensions.Failed("snapshot", h.ID, err, nil)
}

func (s *Shelf) snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (made extensions.Snapshot, err error) {
	if err := spec.CheckKind(s.Declared); err != nil {
		return made, err
	}
	if s.Sure {
		err = checkID(spec.ID)
	} else {
		made, err = s.find(ctx, spec.ID)
	}
	if s.Sure && err == nil || extensions.IsKind(err, extensions.KindIndeterminate) { // not listed
		var n Named
		if n, err = s.Take(ctx, h, spec); err != nil {
			return made, err
		}
		var ok bool
		if made, ok = s.read(n); !ok || made.Handle.ID != spec.ID {
			err = extensions.Errorf(extensions.KindIndeterminate, "%s names %q as a snapshot", s.Vendor, extensions.Clean(n.Ref, 80))
		}
	}
	if made.CreatedAt.IsZero() {
		made.CreatedAt = spec.CreatedAt
	}
	return made, err
}

func checkID(id string) error {
	if !extensions.ValidSnapshotID(id) {
		return extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot id", extensions.Clean(id, 80))
	}
	return nil
}

// FindSnapshot implements extensions.Snapshotter.
func (s *Shelf) FindSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	found, err := s.find(ctx, id)
	return found, extensions.Failed("find-snapshot", "", err, nil)
}

func (s *Shelf) find(ctx context.Context, id string) (found extensions.Snapshot, err error) {
	if err := checkID(id); err != nil {
		return found, err
	}
	there := false
	err = s.Each(ctx, id, "", func(n Named) bool {
		if one, ok := s.read(n); ok && one.Handle.ID == id {
			found, there = one, true
		}
		return there
	})
	if err == nil && !there {
		if err = s.busy(ctx); err != nil {
			return found, err
		}
		err = extensions.Errorf(extensions.KindIndeterminate, "%s does not list it; a new snapshot can be missing for %s", s.Vendor,
			s.Declared.Find.Settle)
	}
	return found, err
}

// busy is KindConflict, with the time to ask again, while a snapshot is being taken.
func (s *Shelf) busy(ctx context.Context) error {
	if s.Taking == nil {
		return nil
	}
	of, err := s.Taking(ctx)
	if err == nil && of != "" {
		e := extensions.Errorf(extensions.KindConflict, "%s is still taking a snapshot of %s, and does not list it yet", s.Vendor, of)
		e.RetryAfter = takingPause
		return e
	}
	return err
}

// StatSnapshot implements extensions.Snapshotter.
func (s *Shelf) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
	found, err := s.stat(ctx, h)
	return found, extensions.Failed("stat-snapshot", "", err, nil)
}

// stat refuses, with KindConflict, a snapshot that has not the handle's id in its name.
func (s *Shelf) stat(ctx context.Context, h extensions.SnapshotHandle) (found extensions.Snapshot, err error) {
	if err := s.Check(h); err != nil {
		return found, err
	}
	its := false
	err = s.Each(ctx, h.ID, h.Ref, func(n Named) bool {
		if one, ok := s.read(n); ok && one.Handle.Ref == h.Ref && one.Handle.ID == h.ID {
			found, its = one, true
		}
		return its
	})
	if err == nil && !its {
		err = extensions.Errorf(extensions.KindConflict, "the snapshot %s at %s does not carry this snapshot's id", h.Ref, s.Vendor).
			WithRemedy("check it at %s; sandboxer does not own it", s.Vendor)
	}
	return found, err
}

// DeleteSnapshot implements extensions.Snapshotter.
func (s *Shelf) DeleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	_, err := s.stat(ctx, h)
	if err == nil {
		err = s.Drop(ctx, h.Ref)
	}
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return extensions.Failed("delete-snapshot", "", err, nil)
}
