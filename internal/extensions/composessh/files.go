package composessh

import (
	"context"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// Upload implements extensions.FileTransfer, into the default service. The
// archive is checked here, entry by entry, before the host gets any of it.
func (b *Backend) Upload(ctx context.Context, h extensions.Handle, dir string, archive io.Reader) error {
	return failed("upload", h.ID, b.upload(ctx, h, dir, archive))
}

// Download implements extensions.FileTransfer. What the container's archiver
// sends is checked here and written anew.
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
	call.script = script("toolbox", "inside", "files")
	return call, nil
}

func (b *Backend) upload(ctx context.Context, h extensions.Handle, dir string, archive io.Reader) error {
	call, err := b.transfer(ctx, h, "in", dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	heard := &hearing{first: make(chan said, 1)}
	filtered := make(chan error, 1)
	go func() {
		filtered <- b.send(ctx, heard.first, archive, out)
		_ = out.Close()
	}()
	_, err = b.client.Run(ctx, remote.Command{Script: call.script, Vars: call.vars, Stdin: in, Stdout: io.Discard,
		Stderr: newChannel(call.vars["channel"], nil, heard.hear)})
	// A source that blocks is its owner's; it is not waited for.
	_ = in.CloseWithError(errEnded)
	cancel()
	select {
	case bad := <-filtered:
		if bad != nil && !errors.Is(bad, errEnded) && !errors.Is(bad, context.Canceled) {
			return bad
		}
	default:
	}
	return heard.outcome(err)
}

// errEnded tells the sender that nobody reads any more.
var errEnded = errors.New("the transfer has ended")

// send passes the archive on, once the script has said how it will take it.
func (b *Backend) send(ctx context.Context, first <-chan said, archive io.Reader, out io.Writer) error {
	select {
	case s := <-first:
		form := form{}
		if s.Method == "copy" {
			form = formOf(s)
		}
		return refill(ctx, archive, out, form)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hearing keeps what a transfer's script says.
type hearing struct {
	first  chan said
	ended  chan struct{} // closed when nothing more is to come
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
		select {
		case h.first <- s:
		default:
		}
	}
}

// beginning is what the script said first. It comes by a stream of its own, so it
// may be later than the beginning of the archive it is about.
func (h *hearing) beginning() said {
	select {
	case s := <-h.first:
		return s
	case <-h.ended:
	}
	select {
	case s := <-h.first:
		return s
	default:
		return said{}
	}
}

// outcome is the error of a transfer whose Run returned err.
func (h *hearing) outcome(err error) error {
	switch {
	case h.failed != nil:
		return h.failed.classify()
	case err != nil:
		return err
	case h.end == nil:
		return extensions.Errorf(extensions.KindIndeterminate, "the host ended the transfer without a result").
			WithRemedy("look at the host: its memory, its disk")
	}
	return nil
}

func (b *Backend) download(ctx context.Context, h extensions.Handle, name string, w io.Writer) error {
	call, err := b.transfer(ctx, h, "out", name)
	if err != nil {
		return err
	}
	t := newTaking(ctx, w)
	call.vars["holes"], call.vars["fill"] = "kept", strconv.FormatInt(maxFilled, 10)
	err = b.take(ctx, call, t)
	if t.holed {
		t.again()
		call.vars["holes"] = "filled"
		err = b.take(ctx, call, t)
	}
	if err != nil {
		return err
	}
	if err := t.close(); err != nil {
		return t.unwritten(err)
	}
	return t.incomplete()
}

// take runs a script that prints archives and lets t have them.
func (b *Backend) take(ctx context.Context, call insideCall, t *taking) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	heard := &hearing{first: make(chan said, 1), ended: make(chan struct{})}
	read := make(chan error, 1)
	go func() {
		err := t.read(in, heard)
		_ = in.CloseWithError(errEnded) // a refused archive ends the script
		read <- err
	}()
	_, err := b.client.Run(ctx, remote.Command{Script: call.script, Vars: call.vars, Stdout: out,
		Stderr: newChannel(call.vars["channel"], nil, heard.hear)})
	close(heard.ended)
	_ = out.Close()
	bad := <-read
	if heard.failed != nil {
		return heard.failed.classify()
	}
	if bad != nil && (err == nil || errors.Is(err, errEnded) || t.broken) {
		return bad
	}
	if err := heard.outcome(err); err != nil {
		return err
	}
	t.service = heard.end.Service
	switch code := *heard.end.Exit; {
	case code == 0 || t.ended && harmless(heard.end.Words):
		return nil
	case t.ended && code <= 2: // the archivers' own codes; the archive goes on after what they could not read
		t.lacks.More, t.lacks.Why = true, extensions.Clean(heard.end.Words, 4000)
		return nil
	default:
		return extensions.Errorf(extensions.KindUnavailable, "the archiver in the service %s ended with code %d: %s", t.service, code, extensions.Clean(heard.end.Words, 400)).
			WithRemedy("look at the service: its memory, the rights of its user")
	}
}

// harmless reports that an archiver complained of nothing but what its files did
// while it read them.
func harmless(words string) bool {
	for line := range strings.SplitSeq(words, "|") { // as the script joins them
		line = strings.TrimSpace(line)
		ours := false
		for _, end := range []string{"file changed as we read it", "File removed before we read it", "socket ignored", "Exiting with failure status due to previous errors"} {
			ours = ours || strings.HasSuffix(line, end)
		}
		if !ours && line != "" {
			return false
		}
	}
	return words != ""
}
