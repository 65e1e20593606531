package conformance

import (
	"archive/tar"
	"bytes"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// rewrite passes a tar stream through change, which may drop an entry.
func rewrite(r io.Reader, change func(h *tar.Header) bool) (*bytes.Buffer, error) {
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return &out, tw.Close()
		}
		if err != nil {
			return nil, err
		}
		if !change(h) {
			continue
		}
		if err := tw.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.Copy(tw, tr); err != nil {
			return nil, err
		}
	}
}

func uploadWith(change func(b *broken, h handle, dir string, e *tar.Header) bool) func(*broken, ctx, handle, string, io.Reader) error {
	return func(b *broken, c ctx, h handle, dir string, r io.Reader) error {
		all, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		changed, err := rewrite(bytes.NewReader(all), func(e *tar.Header) bool { return change(b, h, dir, e) })
		if err != nil {
			return b.wholeBackend.Upload(c, h, dir, bytes.NewReader(all))
		}
		return b.wholeBackend.Upload(c, h, dir, changed)
	}
}

func downloadThen(change func(p string, e *tar.Header)) func(*broken, ctx, handle, string, io.Writer) error {
	return func(b *broken, c ctx, h handle, p string, w io.Writer) error {
		var buf bytes.Buffer
		if err := b.wholeBackend.Download(c, h, p, &buf); err != nil {
			return err
		}
		changed, err := rewrite(&buf, func(e *tar.Header) bool { change(p, e); return true })
		if err != nil {
			return err
		}
		_, err = changed.WriteTo(w)
		return err
	}
}

func misplaced(p string) string {
	if path.IsAbs(p) {
		return p
	}
	return "/tmp/base/" + p
}

var fileMutants = map[string]mutant{
	"files/roundtrip": {download: downloadThen(func(_ string, e *tar.Header) { e.Mode = 0o644 })},
	"files/relative-to-workspace": {
		upload: func(b *broken, c ctx, h handle, dir string, r io.Reader) error {
			return b.wholeBackend.Upload(c, h, misplaced(dir), r)
		},
		download: func(b *broken, c ctx, h handle, p string, w io.Writer) error {
			return b.wholeBackend.Download(c, h, misplaced(p), w)
		}},
	"files/absolute": {upload: func(b *broken, c ctx, h handle, dir string, r io.Reader) error {
		if strings.HasPrefix(dir, "/tmp/some") {
			dir = strings.TrimPrefix(dir, "/")
		}
		return b.wholeBackend.Upload(c, h, dir, r)
	}},
	"files/single-file": {download: downloadThen(func(p string, e *tar.Header) {
		if e.Name == path.Base(p) {
			e.Name = p
		}
	})},
	"files/overwrites": {upload: uploadWith(func(b *broken, h handle, dir string, e *tar.Header) bool {
		return b.wholeBackend.Download(cancelFree, h, path.Join(dir, e.Name), io.Discard) != nil
	})},
	"files/any-name": {upload: uploadWith(func(_ *broken, _ handle, _ string, e *tar.Header) bool {
		return !strings.ContainsRune(e.Name, '\n')
	})},
	"files/leaving-is-refused": {upload: uploadWith(func(_ *broken, _ handle, _ string, e *tar.Header) bool {
		e.Name = strings.TrimPrefix(path.Clean("/"+e.Name), "/")
		return true
	})},
	"files/leaving-by-link-is-refused": {upload: func(b *broken, c ctx, h handle, dir string, r io.Reader) error {
		linked := false
		all, _ := io.ReadAll(r)
		_, _ = rewrite(bytes.NewReader(all), func(e *tar.Header) bool { linked = linked || e.Typeflag == tar.TypeSymlink; return true })
		err := b.wholeBackend.Upload(c, h, dir, bytes.NewReader(all))
		if linked {
			return swallow(err, extensions.KindInvalid)
		}
		return err
	}},
	"files/other-types-refused": {upload: uploadWith(func(_ *broken, _ handle, _ string, e *tar.Header) bool {
		return slices.Contains([]byte{tar.TypeDir, tar.TypeReg, tar.TypeSymlink}, e.Typeflag)
	})},
	"files/damaged-archive-refused": {upload: func(b *broken, c ctx, h handle, dir string, r io.Reader) error {
		all, _ := io.ReadAll(r)
		if _, err := rewrite(bytes.NewReader(all), func(*tar.Header) bool { return true }); err != nil &&
			bytes.HasPrefix(all, []byte("no archive")) {
			return nil
		}
		return b.wholeBackend.Upload(c, h, dir, bytes.NewReader(all))
	}},
	"files/missing-is-not-found": {download: func(b *broken, c ctx, h handle, p string, w io.Writer) error {
		err := b.wholeBackend.Download(c, h, p, w)
		if b.alive(c, "download", h) == nil {
			err = turn(err, extensions.KindNotFound, extensions.KindInternal)
		}
		return err
	}},
	"files/gone-is-not-found": {download: func(b *broken, c ctx, h handle, p string, w io.Writer) error {
		err := b.wholeBackend.Download(c, h, p, w)
		if b.alive(c, "download", h) != nil {
			err = turn(err, extensions.KindNotFound, extensions.KindUnreachable)
		}
		return err
	}},
}
