package vendor

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// Upload extracts a tar stream below dir of a live object. An entry that would
// leave dir is CodeInvalid, and nothing after it is written. A workspace that
// is read-only inside can be written from here.
func (c *Client) Upload(ctx context.Context, ref, dir string, r io.Reader) error {
	root, o, err := c.tree(ctx, OpFiles, ref)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	abs := resolve(o.base(), dir)
	if err := root.MkdirAll(inside(abs), 0o755); err != nil {
		return pathFault(err)
	}
	sub, err := root.OpenRoot(inside(abs))
	if err != nil {
		return pathFault(err)
	}
	defer func() { _ = sub.Close() }()
	return extract(ctx, sub, r)
}

// tree opens the tree of a live object as one call of the service.
func (c *Client) tree(ctx context.Context, op Op, ref string) (root *os.Root, obj Object, err error) {
	err = c.call(ctx, op, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		o, err := st.live(ref)
		if err != nil {
			return nil, err
		}
		obj = o.clone()
		root, err = c.v.openTree(o)
		return o, err
	})
	if err != nil && root != nil {
		_ = root.Close()
	}
	return root, obj, err
}

func extract(ctx context.Context, root *os.Root, r io.Reader) error {
	tr := tarstream.NewReader(r)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fault(CodeInvalid, "the archive cannot be read: "+err.Error())
		}
		name := path.Clean(h.Name)
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fault(CodeInvalid, fmt.Sprintf("the archive's entry %q would leave the folder", h.Name))
		}
		if err := place(root, filepath.FromSlash(name), h, tr); err != nil {
			return pathFault(err)
		}
	}
}

func place(root *os.Root, name string, h *tar.Header, r *tarstream.Reader) error {
	if h.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, 0o755)
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, h.FileInfo().Mode().Perm()|0o600)
		if err != nil {
			return err
		}
		return errors.Join(r.CopyTo(f), f.Close())
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		return root.Link(filepath.FromSlash(path.Clean(h.Linkname)), name)
	}
	return fault(CodeInvalid, fmt.Sprintf("the archive's entry %q is neither a folder, a file nor a symbolic link", h.Name))
}

// pathFault classifies what the tree itself refuses.
func pathFault(err error) error {
	var f *Fault
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fault(CodeNotFound, "there is no such path inside")
	case errors.As(err, &pe):
		return fault(CodeInvalid, pe.Op+" "+pe.Path+": "+pe.Err.Error())
	case errors.As(err, &le):
		return fault(CodeInvalid, le.Op+" "+le.New+": "+le.Err.Error())
	}
	return err
}

// Download writes a path inside a live object as a tar stream, named by its
// last element; the workspace itself and "/" are named ".". What cannot be
// carried is left out and returned.
func (c *Client) Download(ctx context.Context, ref, p string, w io.Writer) ([]tarstream.LeftOut, error) {
	root, o, err := c.tree(ctx, OpFiles, ref)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	abs := resolve(o.base(), p)
	if _, err := root.Lstat(inside(abs)); err != nil {
		return nil, pathFault(err)
	}
	opts := packing
	opts.Partial = true
	m, err := tarstream.PackPath(ctx, w, root, inside(abs), opts)
	return m.Left, pathFault(err)
}

// packing bounds nothing: what a tree holds is on this machine's disk already.
var packing = tarstream.Options{MaxBytes: 1 << 60, MaxEntries: 1 << 40, KeepTimes: true, HardLinks: true, OpenUp: true, NoEntries: true}
