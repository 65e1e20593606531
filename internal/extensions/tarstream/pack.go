package tarstream

import (
	"archive/tar"
	"cmp"
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

// Pack writes everything below root to w as a tar stream; the root itself has no entry. It leaves sockets,
// FIFOs and devices out and lists them in Manifest.Skipped. Exceeding a limit on size or number is
// KindInvalid at once. Unless Options.Partial is set, objects that cannot be read or lie too deep are
// KindInvalid with all their names, or KindUnavailable if they changed while being read. After an error, the
// bytes written are not a stream.
func Pack(ctx context.Context, w io.Writer, root *os.Root, opts Options) (Manifest, error) {
	return PackPath(ctx, w, root, ".", opts)
}

// PackPath is Pack for one object below root: a folder's content, relative to that folder, or a single file
// or symbolic link under its base name. It follows links among the parents of name within root, but not name
// itself. A missing name is KindNotFound.
func PackPath(ctx context.Context, w io.Writer, root *os.Root, name string, opts Options) (Manifest, error) {
	p := newPacker(ctx, w, opts)
	if err := p.start(root, path.Clean(name)); err != nil {
		return Manifest{}, err
	}
	return p.end()
}

type packer struct {
	ctx     context.Context
	w       io.Writer
	tw      *tar.Writer
	opts    Options
	m       Manifest
	count   int64
	bytes   int64
	looked  int64            // objects visited, kept or not
	pending []dirEntry       // folders written only if something in them is
	first   map[fileID]Entry // files that have more names
}

func newPacker(ctx context.Context, w io.Writer, opts Options) *packer {
	return &packer{ctx: ctx, w: w, tw: tar.NewWriter(w), opts: opts.withDefaults(), first: map[fileID]Entry{}}
}

// lost reports that the stream has failed. The walk goes on only so that one error names everything wrong.
func (p *packer) lost() bool { return len(p.m.Left) > 0 && !p.opts.Partial }

func (p *packer) end() (Manifest, error) {
	if p.lost() {
		return Manifest{}, p.refusal()
	}
	if err := p.tw.Close(); err != nil {
		return Manifest{}, fmt.Errorf("write the tar stream: %w", err)
	}
	p.m.sort()
	return p.m, nil
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
		return p.fault(name, err)
	case name == ".":
		return p.folder(root, "")
	}
	parent, err := root.OpenRoot(path.Dir(name) + "/.")
	if err != nil {
		return p.fault(name, err)
	}
	defer parent.Close()
	base := path.Base(name)
	if !seen.IsDir() {
		return p.object(parent, base, base)
	}
	dir, done, err := p.openDir(parent, base)
	if err != nil {
		return p.fault(name, err)
	}
	defer done()
	return p.folder(dir, "")
}

// folder packs the content of dir; at is dir's own path in the stream.
func (p *packer) folder(dir *os.Root, at string) error {
	names, err := p.list(dir)
	if err != nil {
		return p.fault(cmp.Or(at, "."), err)
	}
	for _, name := range names {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if err := p.object(dir, name, path.Join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

// list reads the names in chunks, so that a folder built to exhaust memory meets the limit first.
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
		if p.looked += int64(len(chunk)); p.looked > limit {
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

func (p *packer) object(parent *os.Root, name, at string) error {
	seen, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since the listing
	}
	if err != nil {
		return p.fault(at, err)
	}
	skip := p.opts.Skip != nil && p.opts.Skip(at, seen.IsDir())
	if skip && (!seen.IsDir() || p.opts.Descend == nil || !p.opts.Descend(at)) {
		return nil
	}
	if _, err := checkName(at, p.opts.MaxDepth); err != nil {
		return p.fault(at, err)
	}
	switch seen.Mode().Type() {
	case 0:
		return p.file(parent, name, at, seen)
	case fs.ModeDir:
		return p.dir(parent, name, at, seen, skip)
	case fs.ModeSymlink:
		return p.symlink(parent, name, at, seen)
	}
	p.skip(at, "a "+describe(seen.Mode())+" cannot be carried")
	return nil
}

func (p *packer) dir(parent *os.Root, name, at string, seen os.FileInfo, onlyIfFilled bool) error {
	dir, done, err := p.openDir(parent, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return p.fault(at, err)
	}
	defer done()
	before := len(p.pending)
	e := Entry{Path: at, Type: TypeDir, Mode: seen.Mode().Perm()}
	if onlyIfFilled {
		p.pending = append(p.pending, dirEntry{e, seen.ModTime()})
	} else if err := p.header(e, seen.ModTime()); err != nil {
		return err
	}
	err = p.folder(dir, at)
	p.pending = p.pending[:min(before, len(p.pending))]
	return err
}
