package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"sync/atomic"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What the checks keep, as a file inside; a stream that shows it is altered there.
const (
	word    = "kept by the conformance suite"
	altered = "left by the conformance suite"
)

var readSnapshotChecks = []check{
	{name: "read-snapshot/same-bytes", shares: true, power: extensions.PowerReadSnapshot, also: execToo, run: func(e *env) {
		for _, k := range e.desc.Snapshots.Portable {
			s, first := e.portable(k)
			again := e.readOn(e.openAs(e.cfg), s.Handle)
			equal(e, "the second reading", again, first)
			if sum := digestOf(first); s.Digest != sum {
				e.Errorf("the digest of %d bytes is %s, the snapshot's is %s", len(first), sum, s.Digest)
			}
		}
	}},
	{name: "read-snapshot/restores-at-another-place", shares: true, power: extensions.PowerReadSnapshot, also: execToo, run: func(e *env) {
		for _, k := range e.desc.Snapshots.Portable {
			s, content := e.portable(k)
			there, before := e.elsewhere(), len(e.list(e.b))
			_, h, _ := there.ready(from(s, &stream{content: content, of: s}))
			if got := there.sh(h, "cat l; test -f later || printf ' alone'"); got != word+" alone" {
				e.Errorf("restored at another place: %q", got)
			}
			if all := e.list(e.b); len(all) != before {
				e.Errorf("%d sandboxes exist at the first place, want the %d that were made there", len(all), before)
			}
		}
	}},
	{name: "read-snapshot/opened-once", shares: true, power: extensions.PowerReadSnapshot, also: execToo, run: func(e *env) {
		s, content := e.portable(e.desc.Snapshots.Portable[0])
		src := &stream{content: content, of: s}
		e.elsewhere().ready(from(s, src))
		if n := src.opened.Load(); n != 1 {
			e.Errorf("the stream was opened %d times, want once", n)
		}
	}},
	{name: "read-snapshot/altered-is-refused", shares: true, power: extensions.PowerReadSnapshot, also: execToo, run: func(e *env) {
		s, content := e.portable(e.desc.Snapshots.Portable[0])
		e.elsewhere().refusesStream(s, alter(content))
	}},
	{name: "read-snapshot/cut-is-refused", shares: true, power: extensions.PowerReadSnapshot, also: execToo, run: func(e *env) {
		s, content := e.portable(e.desc.Snapshots.Portable[0])
		there := e.elsewhere()
		there.refusesStream(s, content[:len(content)-min(512, len(content))]) // a tar without half of its end
		there.refusesStream(s, content[:len(content)/2])
	}},
	{name: "read-snapshot/refused-leaves-nothing", shares: true, power: extensions.PowerReadSnapshot, also: execToo,
		hook: hookNamed("Residue", func(h Harness) bool { return h.Residue != nil }), run: func(e *env) {
			s, content := e.portable(e.desc.Snapshots.Portable[0])
			there := e.elsewhere()
			there.gone() // whatever the first sandbox makes for all
			before := there.h.Residue(there.TB, there.cfg)
			there.refusesStream(s, alter(content))
			if after := there.h.Residue(there.TB, there.cfg); !slices.Equal(before, after) {
				e.Errorf("a refused stream left %q, before it was %q", after, before)
			}
		}},
	{name: "read-snapshot/other-kinds-are-refused", shares: true, power: extensions.PowerReadSnapshot, also: execToo, run: func(e *env) {
		s, content := e.portable(e.desc.Snapshots.Portable[0])
		there := e.elsewhere()
		for _, k := range extensions.SnapshotKinds {
			if !slices.Contains(e.desc.Snapshots.Portable, k) {
				of := s
				of.Kind = k
				there.refused("a stream of the kind "+string(k)+", which is not portable",
					there.spec(from(s, &stream{content: content, of: of})), extensions.KindUnsupported)
			}
		}
	}},
	{name: "read-snapshot/keeps-none-there", shares: true, power: extensions.PowerReadSnapshot, also: execToo, run: func(e *env) {
		s, content := e.portable(e.desc.Snapshots.Portable[0])
		there := e.elsewhere()
		there.ready(from(s, &stream{content: content, of: s}))
		there.catchUp(there.desc.Snapshots.Find.Settle)
		if found, err := there.snapshotter().FindSnapshot(there.ctx(), s.Handle.ID); err == nil {
			there.forget(found.Handle)
			e.Errorf("the place that restored it keeps the snapshot %+v", found.Handle)
		}
		if _, err := e.snapshotter().StatSnapshot(e.ctx(), s.Handle); err != nil {
			e.Errorf("the snapshot at its own place: %v", err)
		}
	}},
	{name: "read-snapshot/gone-is-not-found", shares: true, power: extensions.PowerReadSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		s := e.keep(e.snapshotter(), h, e.desc.Snapshots.Portable[0])
		if err := e.snapshotter().DeleteSnapshot(e.ctx(), s.Handle); err != nil {
			e.Fatal(err)
		}
		var got bytes.Buffer
		err := power[extensions.SnapshotReader](e, e.b).ReadSnapshot(e.ctx(), s.Handle, &got)
		e.wantKind("reading a deleted snapshot", err, extensions.KindNotFound)
		if got.Len() > 0 {
			e.Errorf("%d bytes of a deleted snapshot", got.Len())
		}
	}},
}

// portable keeps a sandbox with a file and a link to it, and returns the snapshot with its stream.
func (e *env) portable(k extensions.SnapshotKind) (extensions.Snapshot, []byte) {
	e.Helper()
	spec, h, _ := e.ready()
	e.sh(h, "rm -f later l && mkdir -p d && printf '"+word+"' >d/f && ln -s d/f l")
	s := e.keep(e.snapshotter(), h, k)
	lives := e.goesOn(spec, h)
	content := e.readOn(e.b, s.Handle)
	if lives {
		e.sh(h, "printf x >later")
	}
	return s, content
}

func (e *env) readOn(b extensions.Backend, h extensions.SnapshotHandle) []byte {
	e.Helper()
	var content bytes.Buffer
	if err := power[extensions.SnapshotReader](e, b).ReadSnapshot(e.ctx(), h, &content); err != nil {
		e.Fatalf("read snapshot: %v", err)
	}
	return content.Bytes()
}

// elsewhere returns e at another place of the same kind.
func (e *env) elsewhere() *env {
	e.Helper()
	there := *e
	there.common = nil
	there.cfg = e.h.Config(e.TB)
	there.open()
	return &there
}

// refusesStream restores from bytes that are not the snapshot's, and tears down what that may have made.
func (e *env) refusesStream(s extensions.Snapshot, content []byte) {
	e.Helper()
	spec := e.spec(from(s, &stream{content: content, of: s}))
	h, _, err := e.b.Provision(e.ctx(), spec)
	e.cleanUp(h)
	e.wantKind("a restore from a stream without its digest", err, extensions.KindInvalid)
	if h.IsZero() {
		return
	}
	if o := e.observe(h); o.Phase == extensions.PhaseReady {
		e.Error("a sandbox made of it is ready")
	}
	e.teardown(h)
}

// alter changes the content of a file in a stream, or any byte where that is not to be seen.
func alter(content []byte) []byte {
	out := bytes.ReplaceAll(content, []byte(word), []byte(altered))
	if bytes.Equal(out, content) {
		out = slices.Clone(content)
		out[len(out)/2] ^= 1
	}
	return out
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// from restores s from bytes of another place.
func from(s extensions.Snapshot, src extensions.SnapshotSource) Option {
	return With(func(sp *extensions.Spec) {
		sp.FromSnapshot = &extensions.SnapshotRef{ID: s.Handle.ID, Handle: s.Handle, Source: src}
	})
}

// stream says that content is the snapshot.
type stream struct {
	content []byte
	of      extensions.Snapshot
	opened  atomic.Int64
}

func (s *stream) Open(ctx context.Context) (io.ReadCloser, error) {
	s.opened.Add(1)
	return io.NopCloser(bytes.NewReader(s.content)), ctx.Err()
}

func (s *stream) Digest() string                { return s.of.Digest }
func (s *stream) Kind() extensions.SnapshotKind { return s.of.Kind }
