package tarstream

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// carry packs src and unpacks it into a new folder.
func carry(t *testing.T, src *os.Root, opts Options) (dst *os.Root, packed Manifest, stream []byte) {
	t.Helper()
	dst = makeTree(t)
	packed, stream = carryTo(t, src, dst, opts)
	return dst, packed, stream
}

func carryTo(t testing.TB, src, dst *os.Root, opts Options) (Manifest, []byte) {
	t.Helper()
	var b bytes.Buffer
	packed, err := Pack(t.Context(), &b, src, opts)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := Unpack(t.Context(), bytes.NewReader(b.Bytes()), dst, ".", opts)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(packed.Entries, unpacked.Entries); d != "" {
		t.Errorf("the manifests differ: %s", d)
	}
	indexed, err := Index(t.Context(), io.NewSectionReader(bytes.NewReader(b.Bytes()), 0, int64(b.Len())), opts)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(packed.Entries, indexed.Entries); d != "" {
		t.Errorf("the index differs: %s", d)
	}
	return packed, b.Bytes()
}

func linuxOnly(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: names of any bytes, and holes")
	}
}

func TestEveryNameOfLinuxIsCarriedByteForByte(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	names := []string{"line\nbreak", "tab\t", "caf\xe9", "\xff\xfe", "\x01", " ", "-rf", "back\\slash", "\u202eevil", "=", "GNU.sparse.name",
		"*?[", strings.Repeat("n", 255), strings.Repeat("\xff", 255)}
	src := makeTree(t)
	for _, n := range names {
		must(t, src.WriteFile(n, []byte(n), 0o644))
		must(t, src.Symlink("to "+n, "l"+n[:min(len(n), 200)]))
		must(t, src.MkdirAll("d"+n[:min(len(n), 200)]+"/"+n, 0o755))
	}
	dst, m, _ := carry(t, src, Options{})
	if d := cmp.Diff(listing(t, src), listing(t, dst)); d != "" {
		t.Error(d)
	}
	if len(m.Skipped) != 0 {
		t.Errorf("left out: %q", m.Skipped)
	}
}

func TestPathsBeyondOneCallOfTheKernelAreCarried(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	for name, part := range map[string]string{"many": "d", "long": strings.Repeat("n", 250)} {
		src := makeTree(t)
		at := strings.Repeat(part+"/", 4400/(len(part)+1)-1) + part
		dir, err := MakeFolder(src, at)
		must(t, err)
		must(t, dir.WriteFile("f", []byte("deep"), 0o644))
		must(t, dir.Close())
		dst, m, _ := carry(t, src, Options{})
		if last := m.Entries[len(m.Entries)-1]; last.Path != at+"/f" {
			t.Errorf("%s: the last entry is %s", name, Quote(last.Path))
		}
		dir, err = OpenFolder(dst, at)
		must(t, err)
		if got, err := dir.ReadFile("f"); string(got) != "deep" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		must(t, dir.Close())
	}
}

// A stream that nobody could restore would be a damaged snapshot.
func TestWhatIsPackedIsNeverTooDeepToBeRestored(t *testing.T) {
	t.Parallel()
	opts := Options{MaxDepth: 4}
	src := makeTree(t, "a/b/c/f=1", "a/b/c/empty/", "a/b/c/l->f")
	dst, _, _ := carry(t, src, opts)
	if d := cmp.Diff(listing(t, src), listing(t, dst)); d != "" {
		t.Error(d)
	}
	for _, beyond := range []string{"a/b/c/d/f=1", "a/b/c/d/empty/", "a/b/c/d/l->f"} {
		src := makeTree(t, beyond)
		if _, err := scan(t.Context(), src, opts); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: packed: %v", beyond, err)
		}
		partial := opts
		partial.Partial = true
		var b bytes.Buffer
		m, err := Pack(t.Context(), &b, src, partial)
		must(t, err)
		if len(m.Left) != 1 {
			t.Errorf("%s: left out: %v", beyond, m.Left)
		}
		if _, err := Unpack(t.Context(), &b, makeTree(t), ".", opts); err != nil {
			t.Errorf("%s: %v", beyond, err)
		}
	}
}

// sparse makes a file of the size that holds text here and there.
func sparse(t testing.TB, root *os.Root, name string, size int64, at ...int64) {
	t.Helper()
	f, err := root.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, x := range at {
		if _, err := f.WriteAt([]byte("data"), x); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
}

// Each piece between holes is kept in memory, and another's tar decides how many
// there are.
func TestAnIndexBoundsThePiecesOfAllFiles(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	src := makeTree(t)
	for _, name := range []string{"a", "b"} {
		sparse(t, src, name, 1<<30, 0, 1<<20, 1<<21, 1<<22)
	}
	b, _ := pack(t, src, Options{})
	index := func(most int) error {
		_, err := Index(t.Context(), io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), Options{MaxExtents: most})
		return err
	}
	must(t, index(0))
	must(t, index(8))
	if err := index(7); !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "pieces") {
		t.Errorf("got %v", err)
	}
}

func TestHolesStayHolesAndCountTowardsNoLimit(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	src := makeTree(t, "before=1", "z=1")
	sparse(t, src, "hole", 1<<40)
	sparse(t, src, "end", 1<<40, 1<<40-4)
	sparse(t, src, "islands", 1<<36, 0, 1<<20, 1<<30+17, 1<<35)
	dst, _, b := carry(t, src, Options{MaxBytes: 1 << 20})
	if len(b) > 1<<20 {
		t.Errorf("the stream has %d bytes", len(b))
	}
	for _, name := range []string{"hole", "end", "islands"} {
		want, err := src.Stat(name)
		must(t, err)
		got, err := dst.Stat(name)
		must(t, err)
		if got.Size() != want.Size() {
			t.Errorf("%s has %d bytes, want %d", name, got.Size(), want.Size())
		}
		f, err := dst.Open(name)
		must(t, err)
		defer f.Close()
		if n := sum(dataIn(f, got)); n > 1<<16 {
			t.Errorf("%s holds %d bytes of data", name, n)
		}
	}
	f, err := dst.Open("islands")
	must(t, err)
	defer f.Close()
	for _, at := range []int64{0, 1 << 20, 1<<30 + 17, 1 << 35} {
		word := make([]byte, 6)
		_, _ = f.ReadAt(word, at)
		if string(word) != "data\x00\x00" {
			t.Errorf("at %d: %q", at, word)
		}
	}
	must(t, os.WriteFile(filepath.Join(src.Name(), "dense"), bytes.Repeat([]byte("x"), 1<<20), 0o600))
	if _, err := scan(t.Context(), src, Options{MaxBytes: 1 << 20}); !extensions.IsKind(err, extensions.KindInvalid) ||
		!strings.Contains(err.Error(), "islands") && !strings.Contains(err.Error(), "dense") {
		t.Errorf("data beyond the limit: %v", err)
	}
}

// Whoever is handed a stream opens it with the tar of the system.
func TestTheSystemsTarReadsWhatPackWrites(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	tarPath, err := exec.LookPath("tar")
	if out, _ := exec.Command("tar", "--version").Output(); err != nil || !strings.Contains(string(out), "GNU") {
		t.Skip("needs GNU tar")
	}
	src := makeTree(t, "before=1", "caf\xe9\nx=2", "z=1", "d/"+strings.Repeat("n", 200)+"=3")
	sparse(t, src, "hole", 1<<40)
	sparse(t, src, "\xff"+strings.Repeat("s", 150), 1<<36, 0, 1<<30+17)
	must(t, src.Link("before", "w"))
	_, _, b := carry(t, src, Options{HardLinks: true})
	dst := makeTree(t)
	cmd := exec.CommandContext(t.Context(), tarPath, "-xf", "-", "-C", dst.Name())
	cmd.Stdin = bytes.NewReader(b)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	one, err := scan(t.Context(), src, Options{HardLinks: true})
	must(t, err)
	two, err := scan(t.Context(), dst, Options{HardLinks: true})
	must(t, err)
	if d := cmp.Diff(one, two); d != "" {
		t.Error(d)
	}
}

func TestTheSystemsSparseArchivesAreRead(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	if out, err := exec.Command("tar", "--version").Output(); err != nil || !strings.Contains(string(out), "GNU") {
		t.Skip("needs GNU tar")
	}
	src := makeTree(t, "a=1")
	sparse(t, src, "s", 1<<34, 5, 1<<33)
	out, err := exec.CommandContext(t.Context(), "tar", "-C", src.Name(), "-S", "--format=posix", "--sparse-version=0.1", "-cf", "-",
		".").Output()
	must(t, err)
	dst := makeTree(t)
	got, err := Unpack(t.Context(), bytes.NewReader(out), dst, ".", Options{MaxBytes: 1 << 20})
	must(t, err)
	want, err := scan(t.Context(), src, Options{})
	must(t, err)
	if d := cmp.Diff(want.Entries, got.Entries); d != "" {
		t.Error(d)
	}
}

func TestADigestDoesNotDependOnHowZerosAreStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var holed, dense contentHash
		holed, dense = *newContentHash(), *newContentHash()
		var all []byte
		for range rapid.IntRange(0, 6).Draw(rt, "parts") {
			n := rapid.IntRange(0, 3*zeroBlock).Draw(rt, "length")
			if rapid.Bool().Draw(rt, "hole") {
				_ = holed.hole(int64(n))
				all = append(all, make([]byte, n)...)
				continue
			}
			b := bytes.Repeat([]byte{rapid.Byte().Draw(rt, "byte")}, n)
			_, _ = holed.Write(b)
			all = append(all, b...)
		}
		for rest := all; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "chunk")
			_, _ = dense.Write(rest[:n])
			rest = rest[n:]
		}
		one, two := holed.digest(), dense.digest()
		if one != two {
			rt.Fatalf("%s and %s", one, two)
		}
		if len(all) > 0 {
			other := newContentHash()
			all[rapid.IntRange(0, len(all)-1).Draw(rt, "at")] ^= 1
			_, _ = other.Write(all)
			if other.digest() == one {
				rt.Fatal("other content has the same digest")
			}
		}
	})
}

func TestNamesOfOneFileCountOnceAndStayOne(t *testing.T) {
	t.Parallel()
	src := makeTree(t, "a="+strings.Repeat("x", 1000), "d/")
	for i := range 20 {
		must(t, src.Link("a", fmt.Sprintf("d/%02d", i)))
	}
	dst, _, _ := carry(t, src, Options{HardLinks: true, MaxBytes: 1500})
	one, err := dst.Stat("a")
	must(t, err)
	for i := range 20 {
		two, err := dst.Stat(fmt.Sprintf("d/%02d", i))
		must(t, err)
		if !os.SameFile(one, two) {
			t.Fatalf("the name %d is a file of its own", i)
		}
	}
}

func TestAllThatCannotBeReadIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	root := makeTree(t, "a=1", "b=1", "d/c=1", "e/f=1", "ok=1")
	var b bytes.Buffer
	blind := func(name string) error { return root.Chmod(name, 0) }
	for _, name := range []string{"a", "d/c", "e"} {
		must(t, blind(name))
	}
	t.Cleanup(func() { _ = root.Chmod("e", 0o755) })
	as(t, func() {
		_, err := Pack(t.Context(), &b, root, Options{})
		if !extensions.IsKind(err, extensions.KindInvalid) {
			t.Fatalf("got %v", err)
		}
		for _, name := range []string{`"a"`, `"d/c"`, `"e"`} {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%s is not named: %v", name, err)
			}
		}
		m, err := Pack(t.Context(), &b, root, Options{Partial: true})
		must(t, err)
		var left []string
		for _, l := range m.Left {
			left = append(left, l.Path)
		}
		if d := cmp.Diff([]string{"a", "d/c", "e"}, left); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"b", "d", "ok"}, paths(m)); d != "" {
			t.Error(d)
		}
		m, err = Pack(t.Context(), &b, root, Options{OpenUp: true})
		must(t, err)
		if d := cmp.Diff([]string{"a", "b", "d", "d/c", "e", "e/f", "ok"}, paths(m)); d != "" {
			t.Error(d)
		}
		for _, e := range m.Entries {
			if info, err := root.Lstat(e.Path); e.Path != "e/f" && (err != nil || info.Mode().Perm() != e.Mode) {
				t.Errorf("%s: mode %v, %v, want %v", e.Path, info.Mode(), err, e.Mode)
			}
		}
	})
}

func TestAFileThatBecomesShorterIsLeftOutOfAWholeStream(t *testing.T) {
	t.Parallel()
	root := makeTree(t, "a=1", "b="+strings.Repeat("x", 1<<20), "c=1")
	cut := &shortener{root: root}
	m, err := Pack(t.Context(), cut, root, Options{Partial: true})
	must(t, err)
	if len(m.Left) != 1 || m.Left[0].Path != "b" {
		t.Errorf("left out: %v", m.Left)
	}
	_, err = Unpack(t.Context(), &cut.all, makeTree(t), ".", Options{})
	must(t, err)
	must(t, root.WriteFile("b", bytes.Repeat([]byte("x"), 1<<20), 0o644))
	if _, err := Pack(t.Context(), &shortener{root: root}, root, Options{}); !extensions.IsKind(err, extensions.KindUnavailable) {
		t.Errorf("got %v", err)
	}
}

// shortener empties the file b once some of it was written.
type shortener struct {
	root *os.Root
	all  bytes.Buffer
}

func (s *shortener) Write(p []byte) (int, error) {
	if s.all.Len() > 10_000 {
		_ = os.Truncate(filepath.Join(s.root.Name(), "b"), 0)
	}
	return s.all.Write(p)
}

// Random trees, named with all bytes but "/" and NUL, with links and holes,
// arrive as they were.
func TestAnyTreeIsCarriedAsItIs(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	name := rapid.Custom(func(rt *rapid.T) string {
		b := rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(rt, "name")
		for i := range b {
			if b[i] == 0 || b[i] == '/' {
				b[i] = '\n'
			}
		}
		if s := string(b); s != "." && s != ".." {
			return s
		}
		return "\xff"
	})
	rapid.Check(t, func(rt *rapid.T) {
		base, err := os.MkdirTemp(t.TempDir(), "")
		must(t, err)
		must(t, os.MkdirAll(filepath.Join(base, "src"), 0o755))
		must(t, os.MkdirAll(filepath.Join(base, "dst"), 0o755))
		src, dst := openRoot(t, filepath.Join(base, "src")), openRoot(t, filepath.Join(base, "dst"))
		dirs, files := []string{"."}, []string{}
		for range rapid.IntRange(0, 12).Draw(rt, "objects") {
			at := path.Join(rapid.SampledFrom(dirs).Draw(rt, "folder"), name.Draw(rt, "object"))
			switch rapid.SampledFrom([]string{"dir", "file", "sparse", "link", "hard"}).Draw(rt, "kind") {
			case "dir":
				if src.Mkdir(at, 0o755) == nil {
					dirs = append(dirs, at)
				}
			case "file":
				mode := fs.FileMode(rapid.IntRange(0, 0o777).Draw(rt, "mode"))
				if f, err := src.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
					_, _ = f.Write(rapid.SliceOf(rapid.Byte()).Draw(rt, "content"))
					_ = f.Chmod(mode)
					_ = f.Close()
					files = append(files, at)
				}
			case "sparse":
				if _, err := src.Lstat(at); err != nil {
					sparse(t, src, at, rapid.Int64Range(0, 1<<40).Draw(rt, "size"), rapid.SliceOfN(rapid.Int64Range(0, 1<<40), 0, 3).Draw(rt, "data")...)
					files = append(files, at)
				}
			case "link":
				_ = src.Symlink(name.Draw(rt, "target"), at)
			case "hard":
				if len(files) > 0 {
					_ = src.Link(rapid.SampledFrom(files).Draw(rt, "first"), at)
				}
			}
		}
		opts := Options{OpenUp: true, HardLinks: true}
		packed, _ := carryTo(t, src, dst, opts)
		again, err := Pack(t.Context(), io.Discard, dst, opts)
		must(t, err)
		if d := cmp.Diff(packed, again); d != "" {
			rt.Fatal(d)
		}
		must(t, os.RemoveAll(base))
	})
}

func TestALongListOfNamesIsBounded(t *testing.T) {
	t.Parallel()
	left := slices.Repeat([]LeftOut{{strings.Repeat("x\n", 2000), fs.ErrPermission}}, 1000)
	if s := List(left); len(s) > 10_000 || strings.Contains(s, "\n") || !strings.HasSuffix(s, " and 980 more") {
		t.Errorf("%d bytes: %s", len(s), s)
	}
}
