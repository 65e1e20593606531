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

// options set no bounds: a stream holds no more than the sandbox's disk, since holes stay holes and each file
// comes once, and the receiver enforces its own bounds.
func options() tarstream.Options {
	return tarstream.Options{MaxBytes: 1 << 60, MaxEntries: 1 << 40, KeepTimes: true, HardLinks: true, OpenUp: true, NoEntries: true}
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
	if c.req.Op != wire.OpSeed {
		var err error
		if c.req.Op == wire.OpHome {
			root, err = os.OpenRoot(c.cfg.Home)
		} else {
			root, dir, err = c.place(dir)
		}
		if err != nil {
			return failure(err)
		}
		defer func() { _ = root.Close() }()
	}
	if root == nil {
		return wire.Result{Code: wire.CodeInvalid, Message: "this sandbox has no workspace"}
	}
	in := &input{c: c}
	if _, err := tarstream.Unpack(c.ctx, in, root, path.Clean(dir), options()); err != nil {
		return failure(err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil { // what follows the archive's end, such as padding
		return failure(err)
	}
	return wire.Result{}
}

func (c *session) download() wire.Result {
	root, name, opts := c.seed, ".", options()
	if c.req.Op == wire.OpDownload {
		var err error
		if root, name, err = c.place(string(c.req.Path)); err != nil {
			return failure(err)
		}
		defer func() { _ = root.Close() }()
		opts.Partial = true
	} else {
		if root == nil {
			return wire.Result{Code: wire.CodeInvalid, Message: "this sandbox has no workspace"}
		}
		defer c.freeze()()
	}
	m, err := tarstream.PackPath(c.ctx, c.out.Stream(wire.FrameOutput), root, name, opts)
	return lacking(failure(err), m.Left)
}

// copyOut sends all files of the sandbox, as they are at one moment.
func (c *session) copyOut() wire.Result {
	home, err := os.OpenRoot(c.cfg.Home)
	if err != nil {
		return failure(err)
	}
	defer func() { _ = home.Close() }()
	defer c.freeze()()
	if c.seed != nil {
		if _, err := tarstream.Pack(c.ctx, c.out.Stream(wire.FrameOutput), c.seed, options()); err != nil {
			return failure(err)
		}
	}
	_, err = tarstream.Pack(c.ctx, c.out.Stream(wire.FrameErrors), home, options())
	return failure(err)
}

// maxLeft bounds the paths the result lists, in bytes.
const maxLeft = 1 << 20

// lacking adds to a download's result what it could not carry.
func lacking(r wire.Result, left []tarstream.LeftOut) wire.Result {
	n := 0
	for _, l := range left {
		if n += len(l.Path); n > maxLeft {
			r.LeftMore = true
			break
		}
		r.Left = append(r.Left, []byte(l.Path))
	}
	if len(left) > 0 {
		r.Message = tarstream.List(left)
	}
	return r
}
