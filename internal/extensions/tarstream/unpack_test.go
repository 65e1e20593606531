package tarstream

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestHostileStreamsAreRefusedAndNothingMoreIsWritten(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("d/", DefaultMaxDepth) + "f"
	cases := map[string][]header{
		"absolute":              {file("/tmp/evil", "x")},
		"climbing":              {file("../evil", "x")},
		"climbing inside":       {file("a/../../evil", "x")},
		"dot inside":            {file("a/./b", "x")},
		"double slash":          {file("a//b", "x")},
		"too long a name":       {file(strings.Repeat("n", 256), "x")},
		"too deep":              {file(deep, "x")},
		"hard link":             {special("h", tar.TypeLink)},
		"char device":           {special("c", tar.TypeChar)},
		"block device":          {special("b", tar.TypeBlock)},
		"fifo":                  {special("p", tar.TypeFifo)},
		"twice":                 {file("a", "x"), file("./a", "y")},
		"folder twice":          {dir("a"), dir("a")},
		"file then folder":      {file("a", "x"), dir("a")},
		"folder then file":      {dir("a"), file("a", "x")},
		"implied then file":     {file("a/b", "x"), file("a", "x")},
		"below a file":          {file("a", "x"), file("a/b", "x")},
		"below a link":          {link("a", "/tmp"), file("a/evil", "x")},
		"far below a link":      {link("a", "."), file("a/b/c/evil", "x")},
		"folder over a link":    {link("a", "b"), dir("a")},
		"empty link":            {link("a", "")},
		"too long a link":       {link("a", strings.Repeat("x/", 2048))},
		"hard link to itself":   {header{Header: tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "a"}}},
		"hard link to a link":   {link("a", "/etc/passwd"), special("h", tar.TypeLink)},
		"hard link to a folder": {dir("a"), special("h", tar.TypeLink)},
		"hard link outside":     {header{Header: tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "/etc/passwd"}}},
		"hard link climbing":    {header{Header: tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "../a"}}},
		"root as a file":        {file(".", "x")},
		"root as a link":        {link("./", "/")},
	}
	for name, headers := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := makeTree(t)
			b := stream(t, append(append([]header{file("first", "1")}, headers...), file("last", "x"))...)
			_, err := Unpack(t.Context(), b, root, ".", Options{})
			if !extensions.IsKind(err, extensions.KindInvalid) {
				t.Fatalf("got %v", err)
			}
			got := listing(t, root)
			if !contains(got, "first=1") || contains(got, "last=x") {
				t.Errorf("left %q", got)
			}
			if strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("the message carries control characters: %q", err)
			}
		})
	}
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

func TestOrdinaryForeignArchivesAreAccepted(t *testing.T) {
	t.Parallel()
	root := makeTree(t)
	b := stream(t,
		header{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "abc"}}},
		dir("./"), file("./a", "1"), file("d/e/f", "2"), dir("d/e/"), link("d/l", "../a"), link("venv", "/usr/bin/python3"))
	_, err := Unpack(t.Context(), b, root, "deep/er", Options{})
	must(t, err)
	want := []string{"deep/", "deep/er/", "deep/er/a=1", "deep/er/d/", "deep/er/d/e/", "deep/er/d/e/f=2", "deep/er/d/l->../a",
		"deep/er/venv->/usr/bin/python3"}
	if d := cmp.Diff(want, listing(t, root)); d != "" {
		t.Error(d)
	}
}

func TestLinksAlreadyThereAreNeverFollowed(t *testing.T) {
	t.Parallel()
	outside := makeTree(t, "victim=original")
	root := makeTree(t, "real/kept=1", "in->real", "f->real/kept", "out->"+outside.Name(), "v->"+outside.Name()+"/victim")
	must(t, root.Link("real/kept", "hard"))
	for _, name := range []string{"in/evil", "out/evil"} {
		if _, err := Unpack(t.Context(), stream(t, file(name, "x")), root, ".", Options{}); !extensions.IsKind(err, extensions.KindConflict) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Unpack(t.Context(), stream(t, file("f", "new"), file("hard", "new"), file("v", "new")), root, ".", Options{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"f=new", "hard=new", "in->real", "out->" + outside.Name(), "real/", "real/kept=1", "v=new"}
	if d := cmp.Diff(want, listing(t, root)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"victim=original"}, listing(t, outside)); d != "" {
		t.Error(d)
	}
}

func TestTheFolderItselfCannotLeaveTheRoot(t *testing.T) {
	t.Parallel()
	outside := makeTree(t)
	root := makeTree(t, "out->"+outside.Name(), "f=1")
	for _, at := range []string{"out/x", "out", "../x", "/x", "", "f", "f/x"} {
		_, err := Unpack(t.Context(), stream(t, file("evil", "x")), root, at, Options{})
		if at == "" {
			must(t, err)
			continue
		}
		if !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%q: got %v", at, err)
		}
	}
	if got := listing(t, outside); len(got) != 0 {
		t.Errorf("wrote %q outside", got)
	}
}

func TestAFolderAndAFileNeverReplaceEachOther(t *testing.T) {
	t.Parallel()
	root := makeTree(t, "d/x=1", "f=1")
	for _, h := range []header{file("d", "x"), dir("f"), link("d", "f"), file("f/x", "1")} {
		if _, err := Unpack(t.Context(), stream(t, h), root, ".", Options{}); !extensions.IsKind(err, extensions.KindConflict) {
			t.Errorf("%s: got %v", h.Name, err)
		}
	}
	if d := cmp.Diff([]string{"d/", "d/x=1", "f=1"}, listing(t, root)); d != "" {
		t.Error(d)
	}
}

func TestUnpackLimitsHold(t *testing.T) {
	t.Parallel()
	bomb := header{tar.Header{Typeflag: tar.TypeReg, Name: "big", Size: 11, Mode: 0o644}, "12345678901"}
	for name, c := range map[string]struct {
		headers []header
		opts    Options
	}{
		"one file":    {[]header{bomb}, Options{MaxBytes: 10}},
		"sum":         {[]header{file("a", "123456"), file("b", "12345")}, Options{MaxBytes: 10}},
		"entries":     {[]header{dir("a"), dir("b"), dir("c")}, Options{MaxEntries: 2}},
		"globals":     {[]header{special("g", tar.TypeXGlobalHeader), special("g", tar.TypeXGlobalHeader)}, Options{MaxEntries: 1}},
		"inside link": {[]header{link("l", "../x")}, Options{InsideLinks: true}},
		"inside abs":  {[]header{link("l", "/x")}, Options{InsideLinks: true}},
	} {
		for i := range c.headers {
			if c.headers[i].Typeflag == tar.TypeXGlobalHeader {
				c.headers[i].Header = tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}
			}
		}
		if _, err := Unpack(t.Context(), stream(t, c.headers...), makeTree(t), ".", c.opts); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ok := stream(t, file("a", "1234567890"), link("d/l", "../a"))
	if _, err := Unpack(t.Context(), ok, makeTree(t), ".", Options{MaxBytes: 10, MaxEntries: 2, InsideLinks: true}); err != nil {
		t.Errorf("at the limits: %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestBrokenStreamsAreRefused(t *testing.T) {
	t.Parallel()
	whole := stream(t, file("a", strings.Repeat("x", 2000))).Bytes()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(whole)
	must(t, z.Close())
	for name, r := range map[string]io.Reader{
		"empty":                   strings.NewReader(""),
		"cut between two entries": bytes.NewReader(whole[:512+2048]),
		"cut within the end mark": bytes.NewReader(whole[:512+2048+512]),
		"cut in a file":           bytes.NewReader(whole[:1000]),
		"text":                    strings.NewReader(strings.Repeat("hello ", 200)),
		"gzip":                    &zipped,
		"trailing":                bytes.NewReader(append(bytes.Clone(whole), whole...)),
		"never ends":              io.MultiReader(bytes.NewReader(whole), endless{}),
	} {
		root := makeTree(t)
		_, err := Unpack(t.Context(), r, root, ".", Options{MaxBytes: 1 << 20, MaxEntries: 10})
		if !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := listing(t, root); name == "cut in a file" && len(got) != 0 {
			t.Errorf("a half-written file stayed: %q", got)
		}
	}
}

func TestSparseFilesAreRefused(t *testing.T) {
	t.Parallel()
	// GNU format 1.0: the map is in the file's own data; archive/tar reads
	// such a file at its logical size, so a small stream could fill a disk.
	rec := paxRecord("GNU.sparse.major=1") + paxRecord("GNU.sparse.minor=0") +
		paxRecord("GNU.sparse.name=s.bin") + paxRecord("GNU.sparse.realsize=999")
	px := stream(t, header{tar.Header{Typeflag: tar.TypeReg, Name: "PaxHeaders.0/s", Size: int64(len(rec)), Mode: 0o644}, rec}).Bytes()[:1024]
	px[156] = tar.TypeXHeader
	checksum(px[:512])
	body := stream(t, file("s", "1\n0\n1\n"+strings.Repeat("\x00", 506)+"z")).Bytes()
	root := makeTree(t)
	_, err := Unpack(t.Context(), bytes.NewReader(append(px, body...)), root, ".", Options{})
	if err == nil || !strings.Contains(err.Error(), "sparse") || len(listing(t, root)) != 0 {
		t.Errorf("got %v, left %q", err, listing(t, root))
	}
}

func paxRecord(kv string) string { return fmt.Sprintf("%d %s\n", len(kv)+4, kv) }

func checksum(h []byte) {
	copy(h[148:156], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:156], []byte{byte('0' + sum>>15&7), byte('0' + sum>>12&7), byte('0' + sum>>9&7), byte('0' + sum>>6&7), byte('0' + sum>>3&7),
		byte('0' + sum&7), 0, ' '})
}

func TestOwnerAndUmaskApplyToAllThatIsMade(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("changing owners needs root")
	}
	root := makeTree(t)
	f := file("d/f", "x")
	f.Mode = 0o7777
	_, err := Unpack(t.Context(), stream(t, f, link("l", "/etc/shadow")), root, "top/in", Options{Owner: &Owner{4001, 4002}, Umask: 0o027})
	must(t, err)
	for name, mode := range map[string]os.FileMode{"top/in": 0o750, "top/in/d": 0o750, "top/in/d/f": 0o750, "top/in/l": 0} {
		info, err := os.Lstat(filepath.Join(root.Name(), name))
		must(t, err)
		if uid, gid := owner(info); uid != 4001 || gid != 4002 {
			t.Errorf("%s belongs to %d:%d", name, uid, gid)
		}
		if mode != 0 && info.Mode()&(os.ModePerm|os.ModeSetuid|os.ModeSetgid|os.ModeSticky) != mode {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestVerifyReaderFailsAtTheEnd(t *testing.T) {
	t.Parallel()
	b := stream(t, file("a", "1")).Bytes()
	d := NewDigestReader(bytes.NewReader(b))
	_, err := io.Copy(io.Discard, d)
	must(t, err)
	if d.Size() != int64(len(b)) {
		t.Errorf("size = %d", d.Size())
	}
	if _, err := Unpack(t.Context(), VerifyReader(bytes.NewReader(b), d.Digest()), makeTree(t), ".", Options{}); err != nil {
		t.Errorf("the right digest: %v", err)
	}
	longer := append(bytes.Clone(b), make([]byte, 512)...)
	if _, err := Unpack(t.Context(), VerifyReader(bytes.NewReader(longer), d.Digest()), makeTree(t), ".", Options{}); !extensions.IsKind(err,
		extensions.KindInvalid) {
		t.Errorf("padding changed the bytes, yet: %v", err)
	}
}

func TestACancelledContextEndsTheUnpack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root := makeTree(t)
	if _, err := Unpack(ctx, stream(t, file("a", "1")), root, ".", Options{}); !errors.Is(err, context.Canceled) ||
		len(listing(t, root)) != 0 {
		t.Errorf("got %v, left %q", err, listing(t, root))
	}
}

func TestLinksThatMayLeadOutAreRecognised(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at, target string
		leaves     bool
	}{
		{"l", "x/y", false}, {"a/l", "../x", false}, {"a/b/l", "../..", false}, {"l", ".", false},
		{"l", "/x", true}, {"l", "..", true}, {"a/l", "../../x", true}, {"a/l", "b/../../../x", true},
		{"a/b/e", "up/../x", true}, {"l", "a\\b", true}, {"a/l", "./../x", false},
	} {
		if got := LinkLeaves(c.at, c.target); got != c.leaves {
			t.Errorf("LinkLeaves(%q, %q) = %v", c.at, c.target, got)
		}
	}
}

func TestAnIndexReadsPastWhatSkipNames(t *testing.T) {
	t.Parallel()
	b := stream(t, file("a", "1"), dir("n"), file("n/x", "22"), file("z", "3"),
		header{Header: tar.Header{Typeflag: tar.TypeLink, Name: "zz", Linkname: "n/x"}})
	c, err := Index(t.Context(), io.NewSectionReader(bytes.NewReader(b.Bytes()), 0, int64(b.Len())),
		Options{Skip: func(p string, _ bool) bool { return strings.HasPrefix(p, "n") }})
	must(t, err)
	if d := cmp.Diff([]string{"a", "z", "zz"}, paths(c.Manifest)); d != "" {
		t.Error(d)
	}
	for path, want := range map[string]string{"a": "1", "z": "3", "zz": "22"} {
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		must(t, err)
		defer f.Close()
		must(t, c.CopyTo(f, path))
		if got, _ := os.ReadFile(f.Name()); string(got) != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
}

func TestAWriterMakesWhatPackMakes(t *testing.T) {
	t.Parallel()
	git := makeTree(t, "HEAD=ref", "objects/")
	src := makeTree(t, "a/f=12", "a/l->f", ".git/HEAD=ref", ".git/objects/")
	want, _ := pack(t, src, Options{})
	var b bytes.Buffer
	w := NewWriter(t.Context(), &b, Options{})
	must(t, w.Folder(".git", 0o755, git))
	must(t, w.Dir("a", 0o755))
	must(t, w.File("a/f", 0o644, 2, strings.NewReader("12")))
	must(t, w.Symlink("a/l", "f"))
	for _, at := range []string{"a", "a/f", "../x", "/x", "a/../z", "."} {
		if err := w.Dir(at, 0o755); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%q: got %v", at, err)
		}
	}
	if _, err := w.Close(); err != nil || !bytes.Equal(want, b.Bytes()) {
		t.Errorf("other bytes, %v", err)
	}
	if err := NewWriter(t.Context(), io.Discard, Options{}).File("f", 0o644, 3, strings.NewReader("12")); err == nil {
		t.Error("a file shorter than promised was taken")
	}
}
