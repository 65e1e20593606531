package conformance

import (
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// believes takes what arrives for the snapshot, where it is as long, or shorter and then nothing of it.
func believes(shorter bool) func(*broken, ctx, spec) (handle, seen, error) {
	return provisionWith(func(b *broken, s *spec) {
		if s.FromSnapshot == nil || s.FromSnapshot.Source == nil {
			return
		}
		content, _ := drained(cancelFree, s.FromSnapshot.Source)
		b.w.mu.Lock()
		cut := int64(len(content)) < b.w.sizes[s.FromSnapshot.ID]
		b.w.mu.Unlock()
		of := extensions.Snapshot{Kind: s.FromSnapshot.Source.Kind(), Digest: s.FromSnapshot.Source.Digest()}
		if cut && shorter {
			s.FromSnapshot = nil
			return
		}
		if !cut && !shorter {
			of.Digest = digestOf(content)
		}
		ref := *s.FromSnapshot
		ref.Source = &stream{content: content, of: of}
		s.FromSnapshot = &ref
	})
}

func drained(c ctx, src extensions.SnapshotSource) ([]byte, error) {
	r, err := src.Open(c)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return io.ReadAll(r)
}

// measured notes how large each snapshot is.
func measured(b *broken, c ctx, h handle, s keptSpec) (kept, error) {
	k, err := b.wholeBackend.Snapshot(c, h, s)
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.w.sizes[s.ID] = k.SizeBytes
	return k, err
}

// streamed does more with a spec that is restored from a stream.
func streamed(more func(b *broken, c ctx, s spec, h handle, err error)) func(*broken, ctx, spec) (handle, seen, error) {
	return func(b *broken, c ctx, s spec) (handle, seen, error) {
		h, o, err := b.wholeBackend.Provision(c, s)
		if s.FromSnapshot != nil && s.FromSnapshot.Source != nil {
			more(b, c, s, h, err)
		}
		return h, o, err
	}
}

var readSnapshotMutants = map[string]mutant{
	"read-snapshot/same-bytes": {readSnapshot: func(b *broken, c ctx, h keptAt, w io.Writer) error {
		err := b.wholeBackend.ReadSnapshot(c, h, w)
		if err == nil && remembered(b, h.ID) {
			_, err = io.WriteString(w, "once more")
		}
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		b.w.seen[h.ID] = true
		return err
	}},
	"read-snapshot/restores-at-another-place": {provision: sourceThrough(emptied)},
	"read-snapshot/opened-once": {provision: sourceThrough(func(src extensions.SnapshotSource) extensions.SnapshotSource {
		_, _ = drained(cancelFree, src)
		return src
	})},
	"read-snapshot/altered-is-refused": {snapshot: measured, provision: believes(false),
		also: []string{"read-snapshot/refused-leaves-nothing"}},
	"read-snapshot/cut-is-refused": {snapshot: measured, provision: believes(true)},
	"read-snapshot/refused-leaves-nothing": {provision: streamed(func(b *broken, _ ctx, _ spec, _ handle, err error) {
		if err != nil {
			litter(b)
		}
	})},
	"read-snapshot/other-kinds-are-refused": {provision: sourceThrough(func(src extensions.SnapshotSource) extensions.SnapshotSource {
		return anyKind{src}
	})},
	"read-snapshot/keeps-none-there": {provision: streamed(func(b *broken, c ctx, s spec, h handle, err error) {
		if err == nil {
			_, _ = b.wholeBackend.Snapshot(c, h, keptSpec{ID: s.FromSnapshot.ID, Account: s.Account})
		}
	})},
	"read-snapshot/gone-is-not-found": {readSnapshot: func(b *broken, c ctx, h keptAt, w io.Writer) error {
		return swallow(b.wholeBackend.ReadSnapshot(c, h, w), extensions.KindNotFound)
	}},
}

// sourceThrough changes the source that a spec is restored from.
func sourceThrough(change func(extensions.SnapshotSource) extensions.SnapshotSource) func(*broken, ctx, spec) (handle, seen, error) {
	return provisionWith(func(_ *broken, s *spec) {
		if s.FromSnapshot != nil && s.FromSnapshot.Source != nil {
			ref := *s.FromSnapshot
			ref.Source = change(ref.Source)
			s.FromSnapshot = &ref
		}
	})
}

// anyKind passes every kind for one that the stub moves.
type anyKind struct{ extensions.SnapshotSource }

func (anyKind) Kind() extensions.SnapshotKind { return extensions.SnapshotMetadata }

// emptied gives a tar without anything in place of what it read.
func emptied(src extensions.SnapshotSource) extensions.SnapshotSource {
	content, _ := drained(cancelFree, src)
	of := extensions.Snapshot{Kind: src.Kind(), Digest: src.Digest()}
	if digestOf(content) == of.Digest {
		content = pack(nil, nil)
		of.Digest = digestOf(content)
	}
	return &stream{content: content, of: of}
}
