package tarstream

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Pack writes all below root to w as a tar stream; the root itself has no
// entry. Sockets, FIFOs, devices and names a stream cannot hold are left out
// and listed in Manifest.Skipped. What cannot be read, is too large, too many
// or too deep is KindInvalid; what changes while it is read is
// KindUnavailable. After an error the bytes written are not a stream.
func Pack(ctx context.Context, w io.Writer, root *os.Root, opts Options) (Manifest, error) {
	return PackPath(ctx, w, root, ".", opts)
}

// PackPath is Pack for one object below root: a folder's content, relative to
// that folder, or a single file or symbolic link under its base name. Links
// among the parents of name are followed within root; name itself is not
// followed. A missing name is KindNotFound.
func PackPath(ctx context.Context, w io.Writer, root *os.Root, name string, opts Options) (Manifest, error) {
	p := &packer{ctx: ctx, tw: tar.NewWriter(w), opts: opts.withDefaults()}
	if err := p.start(root, path.Clean(name)); err != nil {
		return Manifest{}, err
	}
	if err := p.tw.Close(); err != nil {
		return Manifest{}, fmt.Errorf("write the tar stream: %w", err)
	}
	p.m.sort()
	return p.m, nil
}

// Scan is Pack without the stream: what root holds now, with digests.
func Scan(ctx context.Context, root *os.Root, opts Options) (Manifest, error) {
	return Pack(ctx, io.Discard, root, opts)
}

type packer struct {
	ctx     context.Context
	tw      *tar.Writer
	opts    Options
	m       Manifest
	bytes   int64
	looked  int        // objects looked at, kept or not
	pending []dirEntry // folders that are written only if something in them is
}

type dirEntry struct {
	entry Entry
	mtime time.Time
}

func (p *packer) start(root *os.Root, name string) error {
	seen, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return extensions.Errorf(extensions.KindNotFound, "%q does not exist", extensions.Clean(name, 200))
	case err != nil:
		return p.unreadable(name, err)
	case name == ".":
		return p.folder(root, "", 0)
	}
	parent, err := root.OpenRoot(path.Dir(name) + "/.")
	if err != nil {
		return p.unreadable(name, err)
	}
	defer parent.Close()
	base := path.Base(name)
	if !seen.IsDir() {
		return p.object(parent, base, base, 0)
	}
	dir, err := openDir(parent, base)
	if err != nil {
		return p.unreadable(name, err)
	}
	defer dir.Close()
	return p.folder(dir, "", 0)
}

// folder packs what dir holds; at is dir's own path in the stream.
func (p *packer) folder(dir *os.Root, at string, depth int) error {
	if depth > p.opts.MaxDepth {
		return tooMuch("%q lies deeper than %d folders", at, p.opts.MaxDepth)
	}
	names, err := p.list(dir)
	if err != nil {
		return p.unreadable(at, err)
	}
	for _, name := range names {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if err := p.object(dir, name, path.Join(at, name), depth); err != nil {
			return err
		}
	}
	return nil
}

// list reads the names in chunks, so that a folder made to exhaust memory
// meets the limit first.
func (p *packer) list(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	limit := 10 * p.opts.MaxEntries
	var names []string
	for {
		chunk, err := f.Readdirnames(1024)
		names = append(names, chunk...)
		if p.looked += len(chunk); p.looked > limit {
			return nil, tooMuch("more than %d objects, counting ignored ones", limit)
		}
		if err == io.EOF {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *packer) object(parent *os.Root, name, at string, depth int) error {
	seen, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since it was listed
	}
	if err != nil {
		return p.unreadable(at, err)
	}
	skip := p.opts.Skip != nil && p.opts.Skip(at, seen.IsDir())
	if skip && (!seen.IsDir() || p.opts.Descend == nil || !p.opts.Descend(at)) {
		return nil
	}
	if _, err := checkName(at, p.opts.MaxDepth+1); err != nil {
		p.skip(at, err.Error())
		return nil
	}
	switch seen.Mode().Type() {
	case 0:
		return p.file(parent, name, at, seen)
	case fs.ModeDir:
		return p.dir(parent, name, at, depth, skip)
	case fs.ModeSymlink:
		return p.symlink(parent, name, at, seen)
	}
	p.skip(at, "a "+describe(seen.Mode())+" cannot be carried")
	return nil
}

func (p *packer) dir(parent *os.Root, name, at string, depth int, onlyIfFilled bool) error {
	dir, err := openDir(parent, name)
	if err != nil {
		return p.unreadable(at, err)
	}
	defer dir.Close()
	info, err := dir.Stat(".")
	if err != nil {
		return p.unreadable(at, err)
	}
	before := len(p.pending)
	e := Entry{Path: at, Type: TypeDir, Mode: info.Mode().Perm()}
	if onlyIfFilled {
		p.pending = append(p.pending, dirEntry{e, info.ModTime()})
	} else if err := p.header(e, info.ModTime()); err != nil {
		return err
	}
	err = p.folder(dir, at, depth+1)
	p.pending = p.pending[:min(before, len(p.pending))]
	return err
}
