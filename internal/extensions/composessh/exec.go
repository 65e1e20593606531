package composessh

import (
	"context"
	"io"
	"regexp"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// execFiles are those of a command.
var execFiles = []string{"kill", "toolbox", "frame", "watch", "inside", "idle", "exec"}

// Exec implements extensions.Execer with one exec on the host, which runs `docker exec` and enforces the time
// limit itself.
func (b *Backend) Exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	r, err := b.exec(ctx, h, req)
	return r, failed("exec", h.ID, err)
}

func (b *Backend) exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	if err := speakable(req); err != nil {
		return extensions.ExecResult{}, err
	}
	call, err := b.enter(ctx, h, req.Service)
	if err != nil {
		return extensions.ExecResult{}, err
	}
	r := refusals{login: req.User}
	return execwire.Run(ctx, req, execwire.Wire{
		Start: func(ctx context.Context, s *execwire.Session) error {
			if err := call.command(s); err != nil {
				return err
			}
			_, err := b.client.Run(ctx, remote.Command{Script: call.script, Vars: call.vars, Stdin: req.Stdin,
				Stdout: s.Stdout, Stderr: s.Stderr, TTY: req.TTY, Raw: true})
			return err
		},
		Stop:  func(ctx context.Context, s *execwire.Session) { b.endCommand(ctx, call, s.Mark) },
		Hold:  r.hold,
		Heard: r.hear,
		Judge: func(exit int, report []byte, reason io.Writer) (int, error) {
			return r.judge(exit, report, reason, req)
		},
		Left: r.left,
	})
}

// insideCall is one script that goes into a service.
type insideCall struct {
	script string
	vars   map[string]string
}

var serviceName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)

// enter prepares a call into a service of h's sandbox.
func (b *Backend) enter(ctx context.Context, h extensions.Handle, service string) (insideCall, error) {
	if err := ctx.Err(); err != nil {
		return insideCall{}, err
	}
	at, err := b.resolve(h)
	if err != nil {
		return insideCall{}, err
	}
	if service != "" && !serviceName.MatchString(service) {
		return insideCall{}, extensions.Errorf(extensions.KindInvalid, "%q is not a service name", extensions.Clean(service, 80)).At("service")
	}
	return insideCall{vars: map[string]string{"root": at.root, "account": b.settings.account, "id": string(at.id),
		"lock_wait": lockWaitShort, "service": service, "sbx_channel": execwire.NewNonce()}}, nil
}

// command makes the call run what s asks for.
func (c *insideCall) command(s *execwire.Session) error {
	req := s.Request
	var words strings.Builder
	words.WriteString("set --")
	for _, a := range req.Argv() {
		words.WriteString(" " + shtext.Quote(a))
	}
	c.script = words.String() + "\n" + script(execFiles...)
	file, exported, err := envFor(req.Env, c.vars)
	if err != nil {
		return err
	}
	limit, up := s.Limit()
	for name, value := range map[string]string{
		"sbx_channel": s.Channel, "mark": s.Mark, "sbx_limit": limit, "sbx_limit_up": up,
		"dir": req.Dir, "login": req.User, "environment": file, "exported": exported,
		"input": flag(req.Stdin != nil || req.TTY != nil), "terminal": flag(req.TTY != nil), "cancel": "",
	} {
		c.vars[name] = value
	}
	return nil
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// endCommand kills what an abandoned call left running inside.
func (b *Backend) endCommand(ctx context.Context, call insideCall, mark string) {
	vars := map[string]string{"cancel": "1", "sbx_channel": execwire.NewNonce(), "mark": mark}
	for _, name := range []string{"root", "account", "id", "service"} {
		vars[name] = call.vars[name]
	}
	_, _ = b.client.Run(ctx, remote.Command{Script: script(execFiles...), Vars: vars})
}
