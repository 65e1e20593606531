package command

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"path"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// WaitReady implements extensions.Backend. It waits until the program says that the sandbox is ready, fills it once,
// and asks the probe until it succeeds.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.waitReady(ctx, spec, h)
	return o, failed("wait-ready", h.ID, err)
}

func (b *backend) waitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	if h, _, err = b.whole(ctx, h); err != nil {
		return o, err
	}
	err = ready.Wait{Timeout: -1}.Until(ctx, func(ctx context.Context) (why string, err error) {
		o, err = b.look(ctx, h)
		switch {
		case err != nil:
			return "", err
		case o.Phase == extensions.PhaseReady:
			return "", nil
		case o.Phase == extensions.PhaseProvisioning:
			return "the program says that it is being created", nil
		case o.Phase == extensions.PhaseAbsent:
			return "", extensions.Errorf(extensions.KindNotFound, "there is no such sandbox")
		}
		return "", extensions.Errorf(extensions.KindFailed, "it is %s: %s", o.Phase, o.Reason)
	})
	if err != nil {
		return o, err
	}
	if err := b.fill(ctx, spec, o.Handle); err != nil {
		return o, err
	}
	err = ready.Of(spec.Readiness).Until(ctx, func(ctx context.Context) (string, error) {
		return ready.Probe(ctx, spec.Readiness, func(ctx context.Context, req extensions.ExecRequest) (extensions.ExecResult, error) {
			return b.exec(ctx, h, req)
		})
	})
	if err != nil {
		return o, err
	}
	return b.look(ctx, h)
}

// look observes one sandbox.
func (b *backend) look(ctx context.Context, h extensions.Handle) (o extensions.Observation, err error) {
	all, err := b.status(ctx, []extensions.Handle{h})
	if err != nil {
		return o, err
	}
	return all[0], all[0].Err
}

// filledFile is written last, in the workspace, with our id.
const filledFile = ".sandboxer/filled"

// fill gives a new sandbox its contents, unless it has them. What was cut short anywhere is done again.
func (b *backend) fill(ctx context.Context, spec extensions.Spec, h extensions.Handle) error {
	if spec.Workspace.Source == nil && spec.Instructions == "" {
		return nil
	}
	d, err := parseHandle(h)
	if err != nil {
		return err
	}
	run := b.transport(h)
	exit, err := run(ctx, execwire.Process{Argv: []string{"/bin/sh", "-c", `test -f "$1"`, "sh", path.Join(d.Workdir, filledFile)},
		Stdin: bytes.NewReader(nil), Stdout: io.Discard, Stderr: io.Discard})
	if err != nil || exit == 0 {
		return err
	}
	if spec.Workspace.Source != nil {
		r, err := spec.Workspace.Source.Open(ctx)
		if err != nil {
			return err
		}
		err = tarbox.Upload(ctx, r, tarbox.Inside(run, d.Workdir, where))
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return tarbox.Upload(ctx, own(spec), tarbox.Inside(run, d.Workdir, where))
}

// own is what every filled workspace has: the instructions, and last the file that says so.
func own(spec extensions.Spec) io.Reader {
	var out bytes.Buffer
	w := tar.NewWriter(&out) // to memory: these headers cannot fail
	put := func(name, text string) {
		_ = w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))})
		_, _ = io.WriteString(w, text)
	}
	if spec.Instructions != "" {
		put(extensions.InstructionsPath, spec.Instructions)
	}
	put(filledFile, string(spec.ID))
	_ = w.Close()
	return &out
}
