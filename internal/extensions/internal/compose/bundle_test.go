package compose

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func readBundle(t *testing.T, files, links map[string]string) *Bundle {
	t.Helper()
	b, err := ReadBundle(t.Context(), pack(t, files, links))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBundleFollowsLinksInsideOnly(t *testing.T) {
	t.Parallel()
	b := readBundle(t, map[string]string{"a/b/f": "1", "g": "2"}, map[string]string{
		"abs": "/etc", "up": "..", "a/up": "../g", "a/far": "../../g", "in": "a/b", "chain": "in/f", "loop": "loop", "l1": "l2", "l2": "l1",
		"a/dot": "."})
	for _, c := range []struct {
		name, at string
		err      error
	}{
		{".", ".", nil}, {"", ".", nil}, {"a", "a", nil}, {"a/b/f", "a/b/f", nil}, {"in/f", "a/b/f", nil}, {"chain", "a/b/f", nil},
		{"a/up", "g", nil},
		{"a/dot/dot/b", "a/b", nil}, {"in/../up", "g", nil}, {"a/b/../../g", "g", nil}, {"new/x", "new/x", errMissing},
		{"in/new", "a/b/new", errMissing},
		{"abs", "", errLeaves}, {"abs/passwd", "", errLeaves}, {"up", "", errLeaves}, {"up/x", "", errLeaves}, {"a/far", "", errLeaves},
		{"..", "", errLeaves},
		{"new/../../x", "", errLeaves}, {"loop", "", errLinks}, {"l1/x", "", errLinks}, {"g/x", "", errMissing},
	} {
		at, e, err := b.resolve(c.name)
		if at != c.at || !errors.Is(err, c.err) || (e == nil) != (c.err != nil) {
			t.Errorf("%q: %q, %v, %v", c.name, at, e, err)
		}
	}
}

func TestBundleRefusesStreamsThatAreNone(t *testing.T) {
	t.Parallel()
	for name, heads := range map[string][]tar.Header{
		"absolute":     {{Name: "/etc/x", Typeflag: tar.TypeReg}},
		"climbs":       {{Name: "../x", Typeflag: tar.TypeReg}},
		"not clean":    {{Name: "a/../x", Typeflag: tar.TypeReg}},
		"device":       {{Name: "x", Typeflag: tar.TypeBlock}},
		"hard link":    {{Name: "x", Typeflag: tar.TypeReg}, {Name: "y", Typeflag: tar.TypeLink, Linkname: "x"}},
		"twice":        {{Name: "x", Typeflag: tar.TypeReg}, {Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/"}},
		"below a link": {{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/"}, {Name: "x/y", Typeflag: tar.TypeReg}},
		"link over":    {{Name: "x/y", Typeflag: tar.TypeReg}, {Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/"}},
	} {
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		for _, h := range heads {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		_ = w.Close()
		if _, err := ReadBundle(t.Context(), tarball{buf.Bytes()}); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadBundle(t.Context(), tarball{[]byte(strings.Repeat("x", 1024))}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("garbage: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadBundle(ctx, pack(t, map[string]string{"a": "1"}, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestBundleReadsSmallFilesWhatTheirName(t *testing.T) {
	t.Parallel()
	b := readBundle(t, map[string]string{"kept.yaml": "1", "odd.bin": "2", "big": strings.Repeat("x", MaxFile+1), "d/": ""},
		map[string]string{"l": "odd.bin"})
	for name, want := range map[string]string{"kept.yaml": "1", "odd.bin": "2", "l": "2"} {
		if data, err := b.ReadFile(name); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	for name, want := range map[string]error{"big": errTooLarge, "none": errMissing, "../x": errLeaves} {
		if _, err := b.ReadFile(name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.ReadFile("d"); err == nil {
		t.Error("a folder was read")
	}
}

// changing gives another content each time it is opened.
type changing struct {
	tarball
	next *[]tarball
}

func (c changing) Open(ctx context.Context) (io.ReadCloser, error) {
	src := (*c.next)[0]
	*c.next = (*c.next)[1:]
	return src.Open(ctx)
}

func TestAFileThatChangesBetweenReadsIsRefused(t *testing.T) {
	t.Parallel()
	next := []tarball{pack(t, map[string]string{"odd.bin": "1"}, nil), pack(t, map[string]string{"odd.bin": "2"}, nil)}
	b, err := ReadBundle(t.Context(), changing{tarball: next[0], next: &next})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.ReadFile("odd.bin"); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("%v", err)
	}
	other := []tarball{pack(t, map[string]string{"x": "2"}, nil)}
	if _, err := ReadBundle(t.Context(), changing{tarball: pack(t, map[string]string{"x": "1"}, nil), next: &other}); !extensions.IsKind(err,
		extensions.KindConflict) {
		t.Errorf("%v", err)
	}
}

func TestTreeDigestIsOfWhatABuildSees(t *testing.T) {
	t.Parallel()
	base := map[string]string{"app/Dockerfile": "FROM x\n", "app/a": "1", "app/skip/x": "1", "app/.dockerignore": "skip\n", "other": "1"}
	digest := func(change map[string]string, links map[string]string, dir, file string) string {
		files := map[string]string{}
		for k, v := range base {
			files[k] = v
		}
		for k, v := range change {
			if v == "-" {
				delete(files, k)
			} else {
				files[k] = v
			}
		}
		d, err := readBundle(t, files, links).TreeDigest(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := digest(nil, nil, "app", "app/Dockerfile")
	for name, c := range map[string]struct {
		change, links map[string]string
		same          bool
	}{
		"again": {same: true}, "other folder": {change: map[string]string{"other": "2"}, same: true},
		"ignored": {change: map[string]string{"app/skip/x": "2", "app/skip/y": "3"}, same: true},
		"content": {change: map[string]string{"app/a": "2"}}, "new": {change: map[string]string{"app/b": ""}},
		"gone":        {change: map[string]string{"app/a": "-"}},
		"renamed":     {change: map[string]string{"app/a": "-", "app/c": "1"}},
		"ignore file": {change: map[string]string{"app/.dockerignore": "skip\nnone\n"}},
		"link":        {links: map[string]string{"app/l": "a"}}, "dockerfile": {change: map[string]string{"app/Dockerfile": "FROM y\n"}},
	} {
		if got := digest(c.change, c.links, "app", "app/Dockerfile"); (got == first) != c.same {
			t.Errorf("%s: %s", name, got)
		}
	}
	if a, b := digest(nil, map[string]string{"app/l": "a"}, "app", ""), digest(nil, map[string]string{"app/l": "b"}, "app", ""); a == b {
		t.Error("a link's target does not count")
	}
	if a, b := digest(nil, map[string]string{"ln": "app"}, "ln", "ln/Dockerfile"), first; a != b {
		t.Error("a folder by another name is another folder")
	}
	// The Dockerfile's own ignore file counts where the folder's says the same:
	// the classic builder reads the folder's alone.
	own := map[string]string{"app/Dockerfile.dockerignore": "a\n"}
	if a, b := digest(own, nil, "app", "app/Dockerfile"), digest(map[string]string{"app/Dockerfile.dockerignore": "a\n", "app/a": "2"}, nil,
		"app", "app/Dockerfile"); a == b {
		t.Error("what the classic builder sees does not count")
	}
	both := map[string]string{"app/Dockerfile.dockerignore": "a\n", "app/.dockerignore": "a\nskip\n"}
	also := map[string]string{"app/Dockerfile.dockerignore": "a\n", "app/.dockerignore": "a\nskip\n", "app/a": "2"}
	if digest(both, nil, "app", "app/Dockerfile") != digest(also, nil, "app", "app/Dockerfile") {
		t.Error("what no builder sees counts")
	}
	b := readBundle(t, base, map[string]string{"out": "/etc"})
	for _, dir := range []string{"none", "out", "..", "other"} {
		if _, err := b.TreeDigest(dir, ""); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := b.TreeDigest("app", "../Dockerfile"); err == nil {
		t.Error("a Dockerfile outside passed")
	}
}
