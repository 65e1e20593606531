package tarstream

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Writer writes a stream from parts that are not a folder on disk, under the
// rules and limits of Pack. Entries must come in the order of ComparePaths.
type Writer struct {
	p    *packer
	last string
}

// NewWriter starts a stream on w. Options.Skip does not apply.
func NewWriter(ctx context.Context, w io.Writer, opts Options) *Writer {
	opts.Skip, opts.Descend = nil, nil
	return &Writer{p: &packer{ctx: ctx, tw: tar.NewWriter(w), opts: opts.withDefaults()}}
}

func (w *Writer) next(at string) error {
	if err := w.p.ctx.Err(); err != nil {
		return err
	}
	clean, err := checkName(at, w.p.opts.MaxDepth)
	if err != nil {
		return err
	}
	if clean != at || at == "." || w.last != "" && ComparePaths(w.last, at) >= 0 {
		return extensions.Errorf(extensions.KindInvalid, "the entry %q is not clean, comes twice or out of order", extensions.Clean(at, 200))
	}
	w.last = at
	return nil
}

// Dir adds a folder.
func (w *Writer) Dir(at string, mode fs.FileMode) error {
	if err := w.next(at); err != nil {
		return err
	}
	return w.p.header(Entry{Path: at, Type: TypeDir, Mode: mode.Perm()}, time.Time{})
}

// Symlink adds a symbolic link.
func (w *Writer) Symlink(at, target string) error {
	if err := w.next(at); err != nil {
		return err
	}
	if why := unfitName(target); why != "" {
		w.p.skip(at, "the link's target "+why)
		return nil
	}
	return w.p.header(Entry{Path: at, Type: TypeSymlink, Mode: 0o777, Link: target}, time.Time{})
}

// File adds a file of exactly size bytes from r.
func (w *Writer) File(at string, mode fs.FileMode, size int64, r io.Reader) error {
	if err := w.next(at); err != nil {
		return err
	}
	if err := w.p.take(at, size); err != nil {
		return err
	}
	if err := w.p.header(Entry{Path: at, Type: TypeFile, Mode: mode.Perm(), Size: size}, time.Time{}); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(w.p.tw, h), ctxReader{w.p.ctx, r}, size); err != nil {
		return fmt.Errorf("pack %q: %w", extensions.Clean(at, 200), err)
	}
	w.p.m.Entries[len(w.p.m.Entries)-1].SHA256 = hex.EncodeToString(h.Sum(nil))
	return nil
}

// Folder adds the folder at with all that dir holds, as Pack would.
func (w *Writer) Folder(at string, mode fs.FileMode, dir *os.Root) error {
	if err := w.Dir(at, mode); err != nil {
		return err
	}
	if err := w.p.folder(dir, at, 1); err != nil {
		return err
	}
	w.last = w.p.m.Entries[len(w.p.m.Entries)-1].Path
	return nil
}

// Skip reports an object that is left out.
func (w *Writer) Skip(at, reason string) { w.p.skip(at, reason) }

// Close ends the stream; w itself stays open.
func (w *Writer) Close() (Manifest, error) {
	if err := w.p.tw.Close(); err != nil {
		return Manifest{}, fmt.Errorf("write the tar stream: %w", err)
	}
	w.p.m.sort()
	return w.p.m, nil
}
