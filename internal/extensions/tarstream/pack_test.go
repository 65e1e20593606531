package tarstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var sample = []string{"a-b=x", "a/", "a/c=hello", "a/d/e/", "abs->/etc/passwd", "empty=", "up->../../outside", "z/ünï ✓=u"}

// scan is Pack without the stream: what root holds now, with digests.
func scan(ctx context.Context, root *os.Root, opts Options) (Manifest, error) {
	return Pack(ctx, io.Discard, root, opts)
}

func pack(t *testing.T, root *os.Root, opts Options) ([]byte, Manifest) {
	t.Helper()
	var b bytes.Buffer
	m, err := Pack(t.Context(), &b, root, opts)
	must(t, err)
	return b.Bytes(), m
}

func paths(m Manifest) []string {
	var out []string
	for _, e := range m.Entries {
		out = append(out, e.Path)
	}
	return out
}

func TestEqualTreesGiveEqualBytes(t *testing.T) {
	t.Parallel()
	one := makeTree(t, sample...)
	reversed := slices.Clone(sample)
	slices.Reverse(reversed)
	two := makeTree(t, reversed...)
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(two.Name(), "a-b"), old, old))
	b1, m1 := pack(t, one, Options{})
	b2, _ := pack(t, two, Options{})
	if !bytes.Equal(b1, b2) {
		t.Error("the same tree, made in another order at another time, gave other bytes")
	}
	if want := []string{"a", "a/c", "a/d", "a/d/e", "a-b", "abs", "empty", "up", "z", "z/ünï ✓"}; !slices.Equal(paths(m1), want) {
		t.Errorf("entries = %q, want %q", paths(m1), want)
	}
	must(t, os.WriteFile(filepath.Join(two.Name(), "a-b"), []byte("y"), 0o644))
	if b3, _ := pack(t, two, Options{}); bytes.Equal(b1, b3) {
		t.Error("changed content gave the same bytes")
	}
}

func TestPackThenUnpackGivesTheSameTree(t *testing.T) {
	t.Parallel()
	src := makeTree(t, sample...)
	must(t, os.Chmod(filepath.Join(src.Name(), "a/c"), 0o751))
	must(t, os.Chmod(filepath.Join(src.Name(), "a/d"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(src.Name(), "a/d"), 0o755) })
	when := time.Unix(1_500_000_000, 0)
	must(t, os.Chtimes(filepath.Join(src.Name(), "a/c"), when, when))
	b, packed := pack(t, src, Options{KeepTimes: true})
	dst := makeTree(t)
	unpacked, err := Unpack(t.Context(), bytes.NewReader(b), dst, ".", Options{KeepTimes: true})
	must(t, err)
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dst.Name(), "a/d"), 0o755) })
	if d := cmp.Diff(packed, unpacked); d != "" {
		t.Errorf("manifests differ: %s", d)
	}
	if d := cmp.Diff(listing(t, src), listing(t, dst)); d != "" {
		t.Errorf("trees differ: %s", d)
	}
	info, err := dst.Stat("a/c")
	must(t, err)
	if info.Mode().Perm() != 0o751 || !info.ModTime().Equal(when) {
		t.Errorf("a/c has mode %v, time %v", info.Mode(), info.ModTime())
	}
	if info, _ := dst.Stat("a/d"); info.Mode().Perm() != 0o555 {
		t.Errorf("a/d has mode %v", info.Mode())
	}
}

func TestASocketIsSkippedAndReported(t *testing.T) {
	t.Parallel()
	root := makeTree(t, "ok=1")
	l, err := net.Listen("unix", filepath.Join(root.Name(), "sock"))
	must(t, err)
	defer l.Close()
	_, m := pack(t, root, Options{})
	if !slices.Equal(paths(m), []string{"ok"}) || len(m.Skipped) != 1 {
		t.Fatalf("manifest = %+v", m)
	}
}

func TestSetIDAndStickyBitsAreDropped(t *testing.T) {
	t.Parallel()
	root := makeTree(t, "bin=x", "d/")
	must(t, os.Chmod(filepath.Join(root.Name(), "bin"), 0o755|os.ModeSetuid|os.ModeSetgid))
	must(t, os.Chmod(filepath.Join(root.Name(), "d"), 0o777|os.ModeSticky))
	_, m := pack(t, root, Options{})
	if m.Entries[0].Mode != 0o755 || m.Entries[1].Mode != 0o777 {
		t.Errorf("modes = %v", m.Entries)
	}
}

func TestHardLinksBecomeFiles(t *testing.T) {
	t.Parallel()
	root := makeTree(t, "a=same")
	must(t, root.Link("a", "b"))
	_, m := pack(t, root, Options{})
	if len(m.Entries) != 2 || m.Entries[1].Type != TypeFile || m.Entries[1].SHA256 != m.Entries[0].SHA256 {
		t.Errorf("entries = %+v", m.Entries)
	}
}

func TestSkippedFoldersAreEnteredOnlyForExceptions(t *testing.T) {
	t.Parallel()
	root := makeTree(t, "keep=1", "mods/a/x=1", "mods/b/y=1", "other/z=1")
	_, m := pack(t, root, Options{
		Skip: func(p string, _ bool) bool {
			return p == "other" || strings.HasPrefix(p, "other/") || strings.HasPrefix(p, "mods") && p != "mods/b/y"
		},
		Descend: func(p string) bool { return strings.HasPrefix(p, "mods") },
	})
	if want := []string{"keep", "mods", "mods/b", "mods/b/y"}; !slices.Equal(paths(m), want) {
		t.Errorf("entries = %q, want %q", paths(m), want)
	}
}

func TestPackPathTakesFoldersFilesAndLinks(t *testing.T) {
	t.Parallel()
	root := makeTree(t, "d/e/f=1", "d/l->/etc", "in->d", "out->/")
	for name, want := range map[string][]string{"d/e/": {"f"}, "d/e/f": {"f"}, "d/l": {"l"}, "in/e": {"f"}, "in": {"in"}} {
		m, err := PackPath(t.Context(), io.Discard, root, name, Options{})
		if err != nil || !slices.Equal(paths(m), want) {
			t.Errorf("PackPath(%q) = %q, %v; want %q", name, paths(m), err, want)
		}
	}
	if _, err := PackPath(t.Context(), io.Discard, root, "d/none", Options{}); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("a missing path gave %v", err)
	}
	for _, name := range []string{"out/etc/passwd", "../x", "/etc/passwd"} {
		if m, err := PackPath(t.Context(), io.Discard, root, name, Options{}); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("PackPath(%q) left the root: %v, %v", name, m, err)
		}
	}
}

func TestPackLimitsHold(t *testing.T) {
	t.Parallel()
	root := makeTree(t, "a/b/c=12345", "d=12345", "e=")
	for name, o := range map[string]Options{"bytes": {MaxBytes: 9}, "entries": {MaxEntries: 4}, "depth": {MaxDepth: 2}} {
		if _, err := scan(t.Context(), root, o); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := scan(t.Context(), root, Options{MaxBytes: 10, MaxEntries: 5, MaxDepth: 3}); err != nil {
		t.Errorf("at the limits: %v", err)
	}
}

// A process inside may swap objects while we read. Whatever it does, nothing
// from outside the root is read and nothing hangs.
func TestSwappingObjectsNeverLeaksOrHangs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs rename over open files")
	}
	outside := makeTree(t, "secret=CANARY", "sub/secret=CANARY")
	root := makeTree(t, "f=ok", "d/secret=ok")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		at := func(n string) string { return filepath.Join(root.Name(), n) }
		for ctx.Err() == nil {
			_ = os.Rename(at("f"), at("f2"))
			_ = os.Symlink(filepath.Join(outside.Name(), "secret"), at("f"))
			_ = os.Rename(at("d"), at("d2"))
			_ = os.Symlink(filepath.Join(outside.Name(), "sub"), at("d"))
			_ = makeFIFO(at("fifo"))
			_ = os.Rename(at("fifo"), at("f"))
			_ = os.Remove(at("f"))
			_ = os.Rename(at("f2"), at("f"))
			_ = os.Remove(at("d"))
			_ = os.Rename(at("d2"), at("d"))
		}
	}()
	for range 2000 {
		var b bytes.Buffer
		_, err := Pack(t.Context(), &b, root, Options{})
		if bytes.Contains(b.Bytes(), []byte("CANARY")) {
			t.Error("read through a link that was swapped in")
			break
		}
		if err != nil && !extensions.IsKind(err, extensions.KindUnavailable) && !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("unclassified: %v", err)
			break
		}
	}
	stop()
	<-done
}

func TestACancelledContextEndsThePack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := scan(ctx, makeTree(t, "a=1"), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAManifestSurvivesJSON(t *testing.T) {
	t.Parallel()
	m := Manifest{Entries: []Entry{
		{Path: "caf\xe9", Type: TypeFile, Mode: 0o644, Size: 3, SHA256: "ab"},
		{Path: "l", Type: TypeSymlink, Mode: 0o777, Link: "\xff"},
	}}
	b, err := json.Marshal(m)
	must(t, err)
	var got Manifest
	must(t, json.Unmarshal(b, &got))
	if d := cmp.Diff(m, got); d != "" {
		t.Error(d)
	}
}
