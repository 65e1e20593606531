package conformance

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type (
	request = extensions.ExecRequest
	result  = extensions.ExecResult
)

// testPatience is how long the suite lets a call be held up in this package's
// own test; a mutant holds it up for longer.
const testPatience = 3 * time.Second

func execWith(change func(b *broken, r *request)) func(*broken, ctx, handle, request) (result, error) {
	return func(b *broken, c ctx, h handle, r request) (result, error) {
		change(b, &r)
		return b.wholeBackend.Exec(c, h, r)
	}
}

func execThen(change func(r request, res *result, err *error)) func(*broken, ctx, handle, request) (result, error) {
	return func(b *broken, c ctx, h handle, r request) (result, error) {
		res, err := b.wholeBackend.Exec(c, h, r)
		change(r, &res, &err)
		return res, err
	}
}

var execMutants = map[string]mutant{
	"exec/literal-argv": {exec: execWith(func(_ *broken, r *request) {
		r.Command = slices.Clone(r.Command)
		for i := range r.Command {
			r.Command[i] = strings.TrimSpace(r.Command[i])
		}
	})},
	"exec/shell": {exec: execThen(func(r request, res *result, _ *error) {
		if r.Shell != "" {
			res.ExitCode = 0
		}
	})},
	"exec/stdin-empty": {exec: execWith(func(_ *broken, r *request) {
		if r.Stdin == nil {
			r.Stdin = strings.NewReader("what nobody sent")
		}
	})},
	"exec/stdin-1MiB": {exec: execWith(func(_ *broken, r *request) {
		if r.Stdin != nil {
			r.Stdin = io.LimitReader(r.Stdin, 64<<10)
		}
	})},
	"exec/stdin-binary": {exec: execWith(func(_ *broken, r *request) {
		if r.Stdin != nil {
			b, _ := io.ReadAll(r.Stdin)
			r.Stdin = bytes.NewReader(bytes.ToValidUTF8(b, []byte("?")))
		}
	})},
	"exec/stdin-unread": {exec: execThen(func(r request, _ *result, err *error) {
		if r.Stdin != nil && len(r.Command) == 1 && r.Command[0] == "true" {
			*err = extensions.Errorf(extensions.KindInternal, "broken pipe")
		}
	})},
	"exec/env": {exec: execWith(func(_ *broken, r *request) {
		if r.Check() == nil {
			r.Env = nil
		}
	})},
	"exec/env-does-not-stay": {exec: execWith(func(b *broken, r *request) {
		if r.Check() != nil {
			return
		}
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		for k, v := range r.Env {
			b.w.secrets[k] = extensions.NewSecret(v)
		}
		env := maps.Clone(r.Env)
		for k, v := range b.w.secrets {
			if env == nil {
				env = map[string]string{}
			}
			env[k] = v.Reveal()
		}
		r.Env = env
	})},
	"exec/dir": {exec: execWith(func(_ *broken, r *request) {
		if r.Dir != "" {
			r.Dir = "/" + r.Dir
		}
	})},
	"exec/dir-missing-runs-nothing": {exec: func(b *broken, c ctx, h handle, r request) (result, error) {
		res, err := b.wholeBackend.Exec(c, h, r)
		if err != nil && r.Dir != "" {
			r.Dir = ""
			return b.wholeBackend.Exec(c, h, r)
		}
		return res, err
	}},
	"exec/user-unknown-is-unsupported": {exec: execWith(func(_ *broken, r *request) { r.User = "" })},
	"exec/user": {exec: func(b *broken, c ctx, h handle, r request) (result, error) {
		if r.User != "" {
			return result{}, extensions.Errorf(extensions.KindUnsupported, "no users")
		}
		return b.wholeBackend.Exec(c, h, r)
	}},
	"exec/exit-codes": {exec: execThen(func(_ request, res *result, _ *error) {
		if res.ExitCode == 255 {
			res.ExitCode = -1
		}
	})},
	"exec/signal-is-128-plus-n": {exec: execThen(func(_ request, res *result, _ *error) {
		if res.ExitCode == 137 {
			res.ExitCode = -1
		}
	})},
	"exec/not-found-127": {exec: execThen(func(_ request, res *result, err *error) {
		if res.ExitCode == 127 {
			*err = extensions.Errorf(extensions.KindNotFound, "no such program")
		}
	})},
	"exec/not-executable-126": {exec: execThen(func(_ request, res *result, _ *error) {
		if res.ExitCode == 126 && len(res.Stderr) > 0 {
			res.ExitCode = 127
		}
	})},
	"exec/bad-request-is-invalid": {exec: execWith(func(_ *broken, r *request) { r.Timeout = max(r.Timeout, 0) })},
	"exec/cut-off-may-have-run": {exec: execThen(func(_ request, _ *result, err *error) {
		*err = turn(*err, extensions.KindIndeterminate, extensions.KindUnreachable)
	})},
	"exec/gone-is-not-found": {exec: execThen(func(_ request, _ *result, err *error) {
		*err = turn(*err, extensions.KindNotFound, extensions.KindUnreachable)
	})},
	"exec/timeout-is-timeout": {exec: execThen(func(_ request, res *result, err *error) {
		if extensions.IsKind(*err, extensions.KindTimeout) {
			*res = result{}
		}
	})},
	"exec/timeout-kills-the-group": {exec: func(b *broken, c ctx, h handle, r request) (result, error) {
		res, err := b.wholeBackend.Exec(c, h, r)
		if extensions.IsKind(err, extensions.KindTimeout) {
			b.w.busy.Go(func() { // the child that lives on
				for range 15 {
					_, _ = b.wholeBackend.Exec(context.Background(), h, request{Shell: "printf x >>beat"})
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		return res, err
	}},
	"exec/timeout-leaves-it-usable": {exec: func(b *broken, c ctx, h handle, r request) (result, error) {
		res, err := b.wholeBackend.Exec(c, h, r)
		if extensions.IsKind(err, extensions.KindTimeout) {
			_, _ = b.wholeBackend.Teardown(context.Background(), h)
		}
		return res, err
	}, also: []string{"exec/timeout-kills-the-group"}},
	"exec/grandchild-holds-stdout": {exec: execThen(func(r request, _ *result, _ *error) {
		if len(r.Command) == 3 && strings.Contains(r.Command[2], "& printf done") {
			time.Sleep(testPatience + time.Second)
		}
	})},
	"exec/output-capped": {exec: execThen(func(_ request, res *result, _ *error) { res.StdoutTruncated = false })},
	"exec/output-whole-is-not-marked": {exec: execThen(func(_ request, res *result, _ *error) {
		res.StdoutTruncated = len(res.Stdout) >= extensions.MaxExecOutput
	})},
	"exec/streams-apart-and-live": {exec: execWith(func(_ *broken, r *request) { r.Stderr = nil })},
	"exec/tty-merges":             {exec: execThen(func(_ request, res *result, _ *error) { res.Merged = false })},
	"exec/cancel-ends-it": {exec: func(b *broken, c ctx, h handle, r request) (result, error) {
		if len(r.Command) == 2 && r.Command[1] == "60" && r.Timeout == 0 {
			r.Timeout = testPatience + time.Second
			return b.wholeBackend.Exec(context.WithoutCancel(c), h, r)
		}
		return b.wholeBackend.Exec(c, h, r)
	}},
	"exec/cancelled-starts-nothing": {exec: func(b *broken, c ctx, h handle, r request) (result, error) {
		if c.Err() == nil {
			return b.wholeBackend.Exec(c, h, r)
		}
		res, err := b.wholeBackend.Exec(context.WithoutCancel(c), h, r)
		return res, errors.Join(err, c.Err())
	}},
	"exec/50-parallel": {exec: func(b *broken, c ctx, h handle, r request) (result, error) {
		b.w.mu.Lock()
		busy := b.w.seen["exec"]
		b.w.seen["exec"] = true
		b.w.mu.Unlock()
		if busy {
			return result{}, extensions.Errorf(extensions.KindUnavailable, "one at a time")
		}
		time.Sleep(20 * time.Millisecond)
		res, err := b.wholeBackend.Exec(c, h, r)
		b.w.mu.Lock()
		delete(b.w.seen, "exec")
		b.w.mu.Unlock()
		return res, err
	}},

	"inside/workspace-arrives": {provision: provisionWith(func(_ *broken, s *spec) {
		if s.Workspace.Access == extensions.AccessRW {
			s.Workspace.Source = nil
		}
	})},
	"inside/workspace-read-only": {provision: provisionWith(func(_ *broken, s *spec) {
		if s.Workspace.Access == extensions.AccessRO {
			s.Workspace.Access = extensions.AccessRW
		}
	})},
	"inside/instructions-arrive": {provision: provisionWith(func(_ *broken, s *spec) { s.Instructions = strings.TrimSpace(s.Instructions) })},
	"inside/sandboxes-are-apart": {exec: func(b *broken, c ctx, _ handle, r request) (result, error) {
		all, err := b.wholeBackend.Status(c, nil)
		if err != nil {
			return result{}, err
		}
		return b.wholeBackend.Exec(c, all[0].Handle, r) // one place for all
	}},

	"logs/show-lines": {logs: func(b *broken, c ctx, h handle, r extensions.LogRequest) (io.ReadCloser, error) {
		in, err := b.wholeBackend.Logs(c, h, r)
		if err != nil || r.Follow || r.Tail > 0 {
			return in, err
		}
		all, _ := io.ReadAll(in)
		lines := strings.Split(string(all), "\n")
		slices.Reverse(lines)
		return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil
	}},
	"logs/tail": {logs: func(b *broken, c ctx, h handle, r extensions.LogRequest) (io.ReadCloser, error) {
		r.Tail = 0
		return b.wholeBackend.Logs(c, h, r)
	}},
	"logs/follow": {logs: func(b *broken, c ctx, h handle, r extensions.LogRequest) (io.ReadCloser, error) {
		r.Follow = false
		return b.wholeBackend.Logs(c, h, r)
	}},
	"logs/cancel-ends-follow": {logs: func(b *broken, c ctx, h handle, r extensions.LogRequest) (io.ReadCloser, error) {
		return b.wholeBackend.Logs(context.WithoutCancel(c), h, r)
	}},
	"logs/gone-is-not-found": {logs: func(b *broken, c ctx, h handle, r extensions.LogRequest) (io.ReadCloser, error) {
		in, err := b.wholeBackend.Logs(c, h, r)
		if extensions.IsKind(err, extensions.KindNotFound) {
			return io.NopCloser(strings.NewReader("")), nil
		}
		return in, err
	}},
}
