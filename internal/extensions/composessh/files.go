package composessh

import (
	"context"
	"io"
	"path"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// filesFiles are those of a transfer.
var filesFiles = []string{"toolbox", "frame", "inside", "idle", "files"}

// Upload implements extensions.FileTransfer, into the default service. It checks the archive here, entry by
// entry, before the host receives it.
func (b *Backend) Upload(ctx context.Context, h extensions.Handle, dir string, archive io.Reader) error {
	return failed("upload", h.ID, b.upload(ctx, h, dir, archive))
}

// Download implements extensions.FileTransfer. It checks what the container's archiver sends and writes it
// anew.
func (b *Backend) Download(ctx context.Context, h extensions.Handle, name string, w io.Writer) error {
	return failed("download", h.ID, b.download(ctx, h, name, w))
}

// transfer prepares a script of files.sh.
func (b *Backend) transfer(ctx context.Context, h extensions.Handle, way, at string) (insideCall, error) {
	if strings.ContainsAny(at, "\x00\n\r") {
		return insideCall{}, extensions.Errorf(extensions.KindInvalid, "the path contains a NUL byte or a line break")
	}
	call, err := b.enter(ctx, h, "")
	if err != nil {
		return insideCall{}, err
	}
	if at != "" {
		at = path.Clean(at)
	}
	if at == "." {
		at = ""
	}
	call.vars["way"], call.vars["at"] = way, at
	call.vars["unpack"], call.vars["pack"] = tarbox.Script("unpack"), tarbox.Script("pack")
	call.script = script(filesFiles...)
	return call, nil
}

func (b *Backend) upload(ctx context.Context, h extensions.Handle, dir string, archive io.Reader) error {
	call, err := b.transfer(ctx, h, "in", dir)
	if err != nil {
		return err
	}
	return tarbox.Upload(ctx, archive, b.way(call))
}

func (b *Backend) download(ctx context.Context, h extensions.Handle, name string, w io.Writer) error {
	call, err := b.transfer(ctx, h, "out", name)
	if err != nil {
		return err
	}
	return tarbox.Download(ctx, w, b.way(call))
}

// way is one run of the script for each transfer.
func (b *Backend) way(call insideCall) tarbox.Way {
	return tarbox.Way{
		In: func(ctx context.Context, from io.Reader, begin func(tarbox.Form)) (tarbox.End, error) {
			heard := &hearing{first: func(s said) {
				if s.Method != "copy" {
					begin(tarbox.Form{})
					return
				}
				// docker cp extracts below / and keeps owners as they are.
				begin(tarbox.Form{Prefix: strings.Trim(path.Clean(s.Path), "/"), UID: s.UID, GID: s.GID, Made: !s.Folder})
			}}
			return heard.transfer(ctx, b, remote.Command{Script: call.script, Vars: call.vars, Stdin: from})
		},
		Out: func(ctx context.Context, to io.Writer, filled bool, begin func(bool)) (tarbox.End, error) {
			call.vars["holes"], call.vars["fill"], call.vars["sift"] = tarbox.PackArguments(filled)
			heard := &hearing{first: func(s said) { begin(s.Method == "copy") }}
			return heard.transfer(ctx, b, remote.Command{Script: call.script, Vars: call.vars, Stdout: to})
		},
	}
}

// hearing stores what a script of files.sh or logs.sh reports.
type hearing struct {
	first  func(said) // gets the reports before the end
	end    *said
	failed *failure
}

func (h *hearing) hear(s said) {
	switch {
	case s.Failure != nil:
		h.failed = s.Failure
	case s.Exit != nil:
		h.end = &s
	default:
		h.first(s)
	}
}

func (h *hearing) transfer(ctx context.Context, b *Backend, c remote.Command) (tarbox.End, error) {
	c.Stderr = channel(c.Vars["sbx_channel"], nil, h.hear)
	_, err := b.client.Run(ctx, c)
	if err = h.outcome(err); err != nil {
		return tarbox.End{}, err
	}
	return tarbox.End{Exit: *h.end.Exit, Words: h.end.Words, Path: h.end.Path, Where: "the service " + h.end.Service}, nil
}

// outcome returns the error of a script whose Run returned err.
func (h *hearing) outcome(err error) error {
	switch {
	case h.failed != nil:
		return h.failed.classify()
	case err != nil:
		return err
	case h.end == nil:
		return extensions.Errorf(extensions.KindIndeterminate, "the host ended the transfer without a result").
			WithRemedy("check the host's memory and disk")
	}
	return nil
}
