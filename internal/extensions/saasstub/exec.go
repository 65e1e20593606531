package saasstub

import (
	"context"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

var errTimeLimit = errors.New("the command's time limit passed")

// Exec implements extensions.Execer.
func (b *backend) Exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	res, err := b.exec(ctx, h, req)
	return res, failed("exec", h.ID, err)
}

func (b *backend) exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (res extensions.ExecResult, err error) {
	if err := req.Check(); err != nil {
		return res, err
	}
	if err := refuseExec(req); err != nil {
		return res, err
	}
	ref, err := b.ref(ctx, h)
	if err != nil {
		return res, err
	}
	if err := b.owned(ctx, h, ref); err != nil {
		return res, err
	}
	limit := req.Timeout
	if limit == 0 {
		limit = extensions.DefaultExecTimeout
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeLimit)
	defer cancel()
	stdout, stderr := &extensions.Capture{Live: req.Stdout}, &extensions.Capture{Live: req.Stderr}
	cmd := vendor.Command{Argv: req.Command, Script: req.Shell, Stdin: req.Stdin, Stdout: stdout, Stderr: stderr, Dir: req.Dir, Env: req.Env}
	if req.TTY != nil {
		cmd.Stderr, res.Merged = stdout, true
	}
	begun := time.Now()
	res.ExitCode, err = b.client.Exec(limited, ref, cmd)
	res.Duration = time.Since(begun)
	res.Stdout, res.StdoutTruncated = stdout.Kept.Bytes(), stdout.Cut
	res.Stderr, res.StderrTruncated = stderr.Kept.Bytes(), stderr.Cut
	if errors.Is(err, errTimeLimit) {
		err = extensions.Errorf(extensions.KindTimeout, "the command was killed after its timeout of %s", limit).
			WithRemedy("raise timeout")
	}
	return res, err
}

func refuseExec(req extensions.ExecRequest) error {
	switch {
	case req.User != "" && req.User != "sandbox":
		return extensions.Errorf(extensions.KindUnsupported, "the vendor's only user is sandbox, not %q", req.User)
	case req.Service != "":
		return extensions.Errorf(extensions.KindUnsupported, "this vendor has no services, so %q does not exist", req.Service)
	case req.ShellPath != "" && req.ShellPath != "/bin/sh" && req.ShellPath != "sh":
		return extensions.Errorf(extensions.KindUnsupported, "the vendor's only shell is /bin/sh, not %q", req.ShellPath)
	}
	return nil
}

// owned refuses to act on an object that carries another id.
func (b *backend) owned(ctx context.Context, h extensions.Handle, ref string) error {
	objs, _, err := b.client.Get(ctx, ref)
	if err != nil {
		return err
	}
	if objs[0] != nil && objs[0].Labels[extensions.LabelID] != string(h.ID) {
		return extensions.Errorf(extensions.KindConflict, "the vendor's object %s does not carry this sandbox's id", ref)
	}
	return nil
}
