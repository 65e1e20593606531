//go:build unix

package initd

import (
	"io"
	"os"
	"path"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// maxEntries bounds one transfer; the bytes are bounded by the sandbox's disk.
const maxEntries = 1_000_000

func (c *session) options() tarstream.Options {
	max := c.req.MaxBytes
	if max <= 0 {
		max = 1 << 42
	}
	return tarstream.Options{MaxBytes: max, MaxEntries: maxEntries, KeepTimes: true}
}

// place opens the folder that p is relative to and returns p below it.
func (s *server) place(p string) (*os.Root, string, error) {
	if rest, ok := strings.CutPrefix(path.Clean(p), "/"); ok && p != "" {
		root, err := os.OpenRoot("/")
		return root, path.Clean(rest), err
	}
	base := s.cfg.Workspace
	if base == "" {
		base = s.cfg.Home
	}
	root, err := os.OpenRoot(base)
	return root, path.Clean(p), err
}

func (c *session) upload() wire.Result {
	root, dir := c.seed, string(c.req.Path)
	if c.req.Op == wire.OpUpload {
		var err error
		if root, dir, err = c.place(dir); err != nil {
			return failure(err)
		}
		defer func() { _ = root.Close() }()
	}
	if root == nil {
		return wire.Result{Code: wire.CodeInvalid, Message: "this sandbox has no workspace"}
	}
	in := &input{c: c}
	if _, err := tarstream.Unpack(c.ctx, in, root, path.Clean(dir), c.options()); err != nil {
		return failure(err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil { // what follows the archive's end, such as padding
		return failure(err)
	}
	return wire.Result{}
}

func (c *session) download() wire.Result {
	root, name := c.seed, "."
	if c.req.Op == wire.OpDownload {
		var err error
		if root, name, err = c.place(string(c.req.Path)); err != nil {
			return failure(err)
		}
		defer func() { _ = root.Close() }()
	} else {
		if root == nil {
			return wire.Result{Code: wire.CodeInvalid, Message: "this sandbox has no workspace"}
		}
		defer c.procs.freeze()()
	}
	_, err := tarstream.PackPath(c.ctx, c.out.Stream(wire.FrameOutput), root, name, c.options())
	return failure(err)
}
