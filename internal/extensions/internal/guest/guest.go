// Package guest is what adapters of vendors share of the inside of a running sandbox: commands, files, and how a new one gets ready.
// A backend embeds Guests, which implements extensions.Execer and extensions.FileTransfer.
package guest

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/contents"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// where names a sandbox in messages.
const where = "the sandbox"

// Guest is one sandbox that runs.
type Guest struct {
	Ref     string // its name at the vendor
	WorkDir string // where relative folders begin; "" = where the transport starts a process
	// User is the only one that commands can run as; "" = the transport takes any.
	User string
	// Run starts commands, Archives those that take or give an archive; nil = Run. Whole says that they read all input before a
	// process starts.
	Run, Archives execwire.Transport
	Whole         bool
	// Read reads a file by a call of the place's own, as contents.Reader says; nil = by a command.
	Read func(ctx context.Context, at string) ([]byte, error)
}

// Guests are the sandboxes of one backend.
type Guests struct {
	Vendor string // for messages
	// Enter returns a sandbox that runs. A paused one is refused as extensions.Paused says.
	Enter func(ctx context.Context, h extensions.Handle) (*Guest, error)
	// Classify is the adapter's, for extensions.Failed; it may be nil.
	Classify func(error) *extensions.Error
	filled   contents.Known
}

func (g *Guests) failed(op string, h extensions.Handle, err *error) {
	*err = extensions.Failed(op, h.ID, *err, g.Classify)
}

// Exec implements extensions.Execer.
func (g *Guests) Exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (r extensions.ExecResult, err error) {
	defer g.failed("exec", h, &err)
	return g.exec(ctx, h, req)
}

func (g *Guests) exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (r extensions.ExecResult, err error) {
	if err := req.CheckSingle(g.Vendor); err != nil {
		return r, err
	}
	in, err := g.Enter(ctx, h)
	if err != nil {
		return r, err
	}
	if in.User != "" {
		if req.User != "" && req.User != in.User {
			return r, extensions.Errorf(extensions.KindUnsupported, "commands run as %s here, not as %q", extensions.Clean(in.User, 80),
				extensions.Clean(req.User, 80)).At("user")
		}
		req.User = ""
	}
	c, err := g.filled.Of(ctx, in.Ref, h.ID, in.shell())
	if err != nil {
		return r, err
	}
	return execwire.Run(ctx, c.For(req), execwire.Inside(in.WorkDir, in.Run))
}

// Upload implements extensions.FileTransfer.
func (g *Guests) Upload(ctx context.Context, h extensions.Handle, dir string, tar io.Reader) (err error) {
	defer g.failed("upload", h, &err)
	in, err := g.Enter(ctx, h)
	if err != nil {
		return err
	}
	return in.unpack(ctx, tarbox.At(in.WorkDir, dir), tar)
}

// Download implements extensions.FileTransfer.
func (g *Guests) Download(ctx context.Context, h extensions.Handle, from string, w io.Writer) (err error) {
	defer g.failed("download", h, &err)
	in, err := g.Enter(ctx, h)
	if err != nil {
		return err
	}
	return tarbox.Download(ctx, w, in.way(tarbox.At(in.WorkDir, from)))
}

// Ready gives a new sandbox its contents, lets start begin what else it must run, and asks its probe until that succeeds. dir is its
// workspace, "" = none. Each part can be done again after a failure.
func (g *Guests) Ready(ctx context.Context, spec extensions.Spec, h extensions.Handle, dir string,
	start func(context.Context) error) error {
	in, err := g.Enter(ctx, h)
	if err == nil {
		err = g.filled.Fill(ctx, in.Ref, dir, spec, in.shell())
	}
	if err == nil && start != nil {
		err = start(ctx)
	}
	if err != nil {
		return err
	}
	return ready.Answered(ctx, spec.Readiness, func(ctx context.Context, req extensions.ExecRequest) (extensions.ExecResult, error) {
		return g.exec(ctx, h, req)
	})
}

// Forget drops what is known of a sandbox that has ended.
func (g *Guests) Forget(ref string) { g.filled.Forget(ref) }

func (in *Guest) shell() contents.Shell {
	return contents.Shell{Run: in.Run, Where: where, Read: in.Read, Unpack: in.unpack}
}

func (in *Guest) unpack(ctx context.Context, dir string, tar io.Reader) error {
	return tarbox.Upload(ctx, tar, in.way(dir))
}

func (in *Guest) way(at string) tarbox.Way {
	run := in.Run
	if in.Archives != nil {
		run = in.Archives
	}
	if in.Whole {
		return tarbox.Whole(run, at, where)
	}
	return tarbox.Inside(run, at, where)
}
