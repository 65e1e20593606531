package tarstream

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Writer writes a stream from parts that are not a folder on disk, under the rules and limits of Pack.
// Entries must come in ComparePaths order.
type Writer struct {
	p    *packer
	last string
}

// NewWriter starts a stream on w. Options.Skip does not apply.
func NewWriter(ctx context.Context, w io.Writer, opts Options) *Writer {
	opts.Skip, opts.Descend = nil, nil
	return &Writer{p: newPacker(ctx, w, opts)}
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
		return extensions.Errorf(extensions.KindInvalid, "the entry %s is not clean, duplicate or out of order", Quote(at))
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
	if why := unfitTarget(target); why != "" {
		return w.p.fault(at, fmt.Errorf("the link's target %s", why))
	}
	return w.p.header(Entry{Path: at, Type: TypeSymlink, Mode: 0o777, Link: target}, time.Time{})
}

// File adds a file of exactly size bytes from r.
func (w *Writer) File(at string, mode fs.FileMode, size int64, r io.Reader) error {
	if err := w.next(at); err != nil {
		return err
	}
	e := Entry{Path: at, Type: TypeFile, Mode: mode.Perm(), Size: size}
	if err := w.p.take(e, whole(size)); err != nil {
		return err
	}
	if err := w.p.header(e, time.Time{}, whole(size)...); err != nil || w.p.lost() {
		return err
	}
	h := newContentHash()
	if _, err := io.CopyN(io.MultiWriter(w.p.tw, h), ctxReader{w.p.ctx, r}, size); err != nil {
		return fmt.Errorf("pack %s: %w", Quote(at), err)
	}
	w.p.digested(h.digest())
	return nil
}

// Folder adds the folder at with everything dir holds, as Pack would.
func (w *Writer) Folder(at string, mode fs.FileMode, dir *os.Root) error {
	if err := w.Dir(at, mode); err != nil {
		return err
	}
	if err := w.p.folder(dir, at); err != nil {
		return err
	}
	if n := len(w.p.m.Entries); n > 0 {
		w.last = w.p.m.Entries[n-1].Path
	}
	return nil
}

// Skip records an object that is left out.
func (w *Writer) Skip(at, reason string) { w.p.skip(at, reason) }

// Close ends the stream; w itself stays open.
func (w *Writer) Close() (Manifest, error) { return w.p.end() }
