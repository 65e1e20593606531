// Package indoors gives a backend what needs no more than a way into its sandboxes: commands, files, what a new one is filled
// with, and its probe.
package indoors

import (
	"cmp"
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/contents"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// Where is how messages name a sandbox.
const Where = "the sandbox"

// Room is the inside of one sandbox that runs.
type Room struct {
	Ref     string // the place's own name of it
	WorkDir string // its workspace, absolute; "" = it has none
	Home    string // where its contents lie; "" = its user says so
	Begin   string // where relative folders begin; "" = WorkDir
	User    string // the only one that commands can run as; "" = the transport takes any
	// Run starts commands, Archives those that take or give an archive; nil = Run. Whole says that Archives reads all input
	// before a process starts.
	Run, Archives execwire.Transport
	Whole         bool
	Inside        contents.Inside // how it is filled; nil = by a shell, which Run starts
	// Read reads a file by a call of the place's own, as contents.Reader says; nil = by a command.
	Read func(ctx context.Context, at string) ([]byte, error)
}

func (r *Room) inside() contents.Inside {
	if r.Inside != nil {
		return r.Inside
	}
	return contents.Shell{Run: r.Run, Where: Where, Home: r.Home, Read: r.Read, Unpack: r.unpack}
}

func (r *Room) begin() string { return cmp.Or(r.Begin, r.WorkDir) }

func (r *Room) way(at string) tarbox.Way {
	run, way := r.Run, tarbox.Inside
	if r.Archives != nil {
		run = r.Archives
	}
	if r.Whole {
		way = tarbox.Whole
	}
	return way(run, tarbox.At(r.begin(), at), Where)
}

func (r *Room) unpack(ctx context.Context, dir string, tar io.Reader) error {
	return tarbox.Upload(ctx, tar, r.way(dir))
}

// as refuses a request for a user that commands cannot run as.
func (r *Room) as(req *extensions.ExecRequest) error {
	if r.User == "" {
		return nil
	}
	if req.User != "" && req.User != r.User {
		return extensions.Errorf(extensions.KindUnsupported, "commands run as %s here, not as %q", extensions.Clean(r.User, 80),
			extensions.Clean(req.User, 80)).At("user")
	}
	req.User = ""
	return nil
}

// Door leads into the sandboxes of one backend.
type Door struct {
	Vendor string // for messages
	// Enter reaches the inside of a handle's sandbox; one that does not run is refused.
	Enter func(ctx context.Context, h extensions.Handle) (*Room, error)
	// Start begins what else a filled sandbox must run, before its probe, and can be done again; nil = nothing.
	Start func(ctx context.Context, h extensions.Handle) error

	filled contents.Known // by Ref
}

// Exec implements extensions.Execer.
func (d *Door) Exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	r, err := d.exec(ctx, h, req)
	return r, extensions.Failed("exec", h.ID, err, nil)
}

func (d *Door) exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (r extensions.ExecResult, err error) {
	if err := req.CheckSingle(d.Vendor); err != nil {
		return r, err
	}
	room, err := d.Enter(ctx, h)
	if err == nil {
		err = room.as(&req)
	}
	if err != nil {
		return r, err
	}
	c, err := d.filled.Of(ctx, room.Ref, h.ID, room.inside())
	if err != nil {
		return r, err
	}
	return execwire.Run(ctx, c.For(req), execwire.Inside(room.begin(), room.Run))
}

// Upload implements extensions.FileTransfer.
func (d *Door) Upload(ctx context.Context, h extensions.Handle, dir string, tar io.Reader) error {
	room, err := d.Enter(ctx, h)
	if err == nil {
		err = room.unpack(ctx, dir, tar)
	}
	return extensions.Failed("upload", h.ID, err, nil)
}

// Download implements extensions.FileTransfer.
func (d *Door) Download(ctx context.Context, h extensions.Handle, from string, w io.Writer) error {
	room, err := d.Enter(ctx, h)
	if err == nil {
		err = tarbox.Download(ctx, w, room.way(from))
	}
	return extensions.Failed("download", h.ID, err, nil)
}

// Furnish fills a sandbox that has started, unless it is filled, and waits until its probe answers. Each part can be done
// again after a failure.
func (d *Door) Furnish(ctx context.Context, spec extensions.Spec, h extensions.Handle) error {
	if err := d.fill(ctx, spec, h); err != nil {
		return ready.InTime(ctx, err)
	}
	return ready.Answered(ctx, spec.Readiness, func(ctx context.Context, req extensions.ExecRequest) (extensions.ExecResult, error) {
		return d.exec(ctx, h, req)
	})
}

func (d *Door) fill(ctx context.Context, spec extensions.Spec, h extensions.Handle) error {
	room, err := d.Enter(ctx, h)
	if err != nil {
		return err
	}
	if err := d.filled.Fill(ctx, room.Ref, room.WorkDir, spec, room.inside()); err != nil || d.Start == nil {
		return err
	}
	return d.Start(ctx, h)
}

// Forget drops what is known of a sandbox that has ended.
func (d *Door) Forget(ref string) { d.filled.Forget(ref) }
