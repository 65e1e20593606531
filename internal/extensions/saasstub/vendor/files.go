package vendor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// Upload extracts a tar stream below dir of a live object. An entry that would leave dir is CodeInvalid, and
// nothing after it is written. Upload can write to a workspace that is read-only inside.
func (c *Client) Upload(ctx context.Context, ref, dir string, r io.Reader) error {
	root, o, err := c.tree(ctx, OpFiles, ref)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	defer c.v.Use(ctx, ref)()
	return unpack(ctx, root, inside(resolve(o.base(), dir)), r)
}

func unpack(ctx context.Context, root *os.Root, dir string, r io.Reader) error {
	_, err := tarstream.Unpack(ctx, r, root, filepath.ToSlash(dir), packing)
	if extensions.IsKind(err, extensions.KindConflict) { // a folder where a file is, or the other way round
		return fault(CodeInvalid, err.Error())
	}
	return err
}

// tree opens a live object's tree as one call of the service.
func (c *Client) tree(ctx context.Context, op Op, ref string) (root *os.Root, obj Object, err error) {
	err = c.call(ctx, op, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		o, err := st.live(ref)
		if err != nil {
			return nil, err
		}
		if o.State == StatePaused && op != OpLogs {
			return nil, fault(CodePaused, "the object is paused")
		}
		obj = o.clone()
		root, err = c.v.openTree(o)
		return o, err
	})
	if err != nil && root != nil && op != OpExec {
		_ = root.Close()
		root = nil
	}
	return root, obj, err
}

// pathFault classifies what the tree itself refuses.
func pathFault(err error) error {
	var f *Fault
	var pe *fs.PathError
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fault(CodeNotFound, "there is no such path inside")
	case errors.As(err, &pe):
		return fault(CodeInvalid, pe.Op+" "+pe.Path+": "+pe.Err.Error())
	}
	return err
}

// Download writes a path inside a live object as a tar stream, named by its last element; the workspace
// itself and "/" are named ".". It leaves out what cannot be carried, and returns that.
func (c *Client) Download(ctx context.Context, ref, p string, w io.Writer) ([]tarstream.LeftOut, error) {
	root, o, err := c.tree(ctx, OpFiles, ref)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	defer c.v.Use(ctx, ref)()
	abs := resolve(o.base(), p)
	if _, err := root.Lstat(inside(abs)); err != nil {
		return nil, pathFault(err)
	}
	opts := packing
	opts.Partial = true
	m, err := tarstream.PackPath(ctx, w, root, inside(abs), opts)
	return m.Left, pathFault(err)
}

// packing sets no bounds: a tree's content is on this machine's disk already.
var packing = tarstream.Options{MaxBytes: 1 << 60, MaxEntries: 1 << 40, KeepTimes: true, HardLinks: true, OpenUp: true, NoEntries: true}
