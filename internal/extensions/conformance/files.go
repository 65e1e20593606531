package conformance

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func file(name string, mode int64, size int) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(size)}
}

var fileChecks = []check{
	{name: "files/roundtrip", shares: true, power: extensions.PowerFiles, run: func(e *env) {
		_, h, _ := e.ready()
		big := strings.Repeat("\x00\x01\xfe\xff0123456789ab", 3<<16)
		e.upload(h, "in", pack([]tar.Header{{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}, file("d/big", 0o644, len(big)),
			file("d/run", 0o755, 2),
			{Name: "d/link", Typeflag: tar.TypeSymlink, Linkname: "run", Mode: 0o777}}, map[string]string{"d/big": big, "d/run": "#!"}))
		got := e.download(h, "in")
		if f := got["d/big"]; f.content != big {
			e.Errorf("3 MiB came back as %d bytes that differ", len(f.content))
		}
		if f := got["d/run"]; f.content != "#!" || f.Mode&0o100 == 0 {
			e.Errorf("the program came back as %q with mode %o", f.content, f.Mode)
		}
		if f := got["d/link"]; f.Typeflag != tar.TypeSymlink || f.Linkname != "run" {
			e.Errorf("the link came back as type %q to %q", f.Typeflag, f.Linkname)
		}
	}},
	{name: "files/relative-to-workspace", shares: true, power: extensions.PowerFiles, also: []extensions.Power{extensions.PowerExec},
		run: func(e *env) {
			_, h, _ := e.ready()
			e.upload(h, "", pack([]tar.Header{file("f", 0o644, 4)}, map[string]string{"f": "here"}))
			if got := e.sh(h, "cat f"); got != "here" {
				e.Errorf("a command in the workspace reads %q", got)
			}
			e.sh(h, "mkdir -p made && printf inside >made/f")
			if got := e.download(h, "made")["f"]; got.content != "inside" {
				e.Errorf("downloaded %q", got.content)
			}
		}},
	{name: "files/absolute", shares: true, power: extensions.PowerFiles, run: func(e *env) {
		_, h, _ := e.ready()
		e.upload(h, "/tmp/some/where", pack([]tar.Header{file("f", 0o644, 1)}, map[string]string{"f": "x"}))
		if got := e.download(h, "/tmp/some/where")["f"]; got.content != "x" {
			e.Errorf("downloaded %q", got.content)
		}
	}},
	{name: "files/single-file", shares: true, power: extensions.PowerFiles, run: func(e *env) {
		_, h, _ := e.ready()
		e.upload(h, "", pack([]tar.Header{file("dir/only", 0o644, 1)}, map[string]string{"dir/only": "x"}))
		got := e.download(h, "dir/only")
		if f, ok := got["only"]; !ok || len(got) != 1 || f.content != "x" {
			e.Errorf("a single file came as %d entries", len(got))
		}
	}},
	{name: "files/overwrites", shares: true, power: extensions.PowerFiles, run: func(e *env) {
		_, h, _ := e.ready()
		e.upload(h, "", pack([]tar.Header{file("f", 0o644, 6)}, map[string]string{"f": "longer"}))
		e.upload(h, "", pack([]tar.Header{file("f", 0o644, 1)}, map[string]string{"f": "x"}))
		if got := e.download(h, "f")["f"]; got.content != "x" {
			e.Errorf("after the second upload the file is %q", got.content)
		}
	}},
	{name: "files/any-name", shares: true, power: extensions.PowerFiles, run: func(e *env) {
		_, h, _ := e.ready()
		want, headers := map[string]string{}, []tar.Header{}
		for _, name := range []string{"line\nbreak", "caf\xe9", "\xff", "-rf", "a b"} {
			want[name], headers = name, append(headers, file(name, 0o644, len(name)))
		}
		e.upload(h, "names", pack(headers, want))
		got := e.download(h, "names")
		for name := range want {
			if got[name].content != name {
				e.Errorf("the file %q came back as %q", name, got[name].content)
			}
		}
		if len(got) != len(want) {
			e.Errorf("%d files went in, %d came back", len(want), len(got))
		}
	}},
	{name: "files/leaving-is-refused", shares: true, power: extensions.PowerFiles, run: func(e *env) {
		_, h, _ := e.ready()
		for _, name := range []string{"../out", "a/../../out", "/tmp/out-absolute"} {
			stream := pack([]tar.Header{file(name, 0o644, 1), file("after", 0o644, 1)}, map[string]string{name: "x", "after": "x"})
			err := power[extensions.FileTransfer](e, e.b).Upload(e.ctx(), h, "box", bytes.NewReader(stream))
			e.wantKind("an entry named "+name, err, extensions.KindInvalid)
			for _, p := range []string{path.Join("box", name), name, "out", "box/after"} {
				if e.exists(h, p) {
					e.Errorf("the entry %s wrote %s", name, p)
				}
			}
		}
	}},
	{name: "files/leaving-by-link-is-refused", shares: true, power: extensions.PowerFiles, run: func(e *env) {
		_, h, _ := e.ready()
		e.upload(h, "/tmp/target", pack([]tar.Header{file("keep", 0o644, 1)}, map[string]string{"keep": "x"}))
		for _, to := range []string{"/tmp/target", "../../../../../../../../tmp/target"} {
			stream := pack([]tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777}, file("l/planted", 0o644, 1)},
				map[string]string{"l/planted": "x"})
			err := power[extensions.FileTransfer](e, e.b).Upload(e.ctx(), h, "box", bytes.NewReader(stream))
			e.wantKind("an entry below a link to "+to, err, extensions.KindInvalid)
			if e.exists(h, "/tmp/target/planted") {
				e.Errorf("a link to %s let an entry leave the folder", to)
			}
		}
	}},
	{name: "files/other-types-refused", shares: true, power: extensions.PowerFiles, run: func(e *env) {
		_, h, _ := e.ready()
		for _, entry := range []tar.Header{{Name: "hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"},
			{Name: "pipe", Typeflag: tar.TypeFifo, Mode: 0o644},
			{Name: "dev", Typeflag: tar.TypeChar, Mode: 0o644}} {
			err := power[extensions.FileTransfer](e, e.b).Upload(e.ctx(), h, "", bytes.NewReader(pack([]tar.Header{entry}, nil)))
			e.wantKind("an entry of type "+string(entry.Typeflag), err, extensions.KindInvalid)
			if e.exists(h, entry.Name) {
				e.Errorf("the entry %s was made", entry.Name)
			}
		}
	}},
	{name: "files/damaged-archive-refused", shares: true, power: extensions.PowerFiles, run: func(e *env) {
		_, h, _ := e.ready()
		err := power[extensions.FileTransfer](e, e.b).Upload(e.ctx(), h, "", strings.NewReader(strings.Repeat("no archive ", 200)))
		e.wantKind("what is no archive", err, extensions.KindInvalid)
	}},
	{name: "files/missing-is-not-found", shares: true, power: extensions.PowerFiles, run: func(e *env) {
		_, h, _ := e.ready()
		err := power[extensions.FileTransfer](e, e.b).Download(e.ctx(), h, "no/such/path", io.Discard)
		e.wantKind("download of a missing path", err, extensions.KindNotFound)
	}},
	{name: "files/gone-is-not-found", shares: true, power: extensions.PowerFiles, run: func(e *env) {
		h := e.gone()
		f := power[extensions.FileTransfer](e, e.b)
		e.wantKind("download from what is gone", f.Download(e.ctx(), h, "x", io.Discard), extensions.KindNotFound)
		e.wantKind("upload to what is gone", f.Upload(e.ctx(), h, "x", bytes.NewReader(pack(nil, nil))), extensions.KindNotFound)
	}},
}

type entry struct {
	tar.Header
	content string
}

func (e *env) upload(h extensions.Handle, dir string, stream []byte) {
	e.Helper()
	if err := power[extensions.FileTransfer](e, e.b).Upload(e.ctx(), h, dir, bytes.NewReader(stream)); err != nil {
		e.Fatalf("upload: %v", err)
	}
}

// download returns what lies below a path, folders left out, by clean name.
func (e *env) download(h extensions.Handle, p string) map[string]entry {
	e.Helper()
	var buf bytes.Buffer
	if err := power[extensions.FileTransfer](e, e.b).Download(e.ctx(), h, p, &buf); err != nil {
		e.Fatalf("download of %s: %v", p, err)
	}
	out := map[string]entry{}
	for tr := tar.NewReader(&buf); ; {
		hd, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			e.Fatalf("the downloaded archive: %v", err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			e.Fatalf("the downloaded archive: %v", err)
		}
		if hd.Typeflag != tar.TypeDir {
			out[path.Clean(hd.Name)] = entry{*hd, string(content)}
		}
	}
}

func (e *env) exists(h extensions.Handle, p string) bool {
	e.Helper()
	return power[extensions.FileTransfer](e, e.b).Download(e.ctx(), h, p, io.Discard) == nil
}
