package composessh

import (
	"context"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

const (
	// execGrace is what a host gets beyond a command's own limit, to end the
	// command and to say so.
	execGrace = 30 * time.Second
	// endLimit bounds ending a command whose caller gave up.
	endLimit = 20 * time.Second
)

// Exec implements extensions.Execer: one exec on the host, which runs `docker
// exec` and keeps the time itself.
func (b *Backend) Exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	r, err := b.exec(ctx, h, req)
	return r, failed("exec", h.ID, err)
}

func (b *Backend) exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	if err := req.Check(); err != nil {
		return extensions.ExecResult{}, err
	}
	if err := speakable(req); err != nil {
		return extensions.ExecResult{}, err
	}
	call, err := b.enter(ctx, h, req.Service)
	if err != nil {
		return extensions.ExecResult{}, err
	}
	if req.Timeout == 0 {
		req.Timeout = extensions.DefaultExecTimeout
	}
	if err := call.command(req); err != nil {
		return extensions.ExecResult{}, err
	}
	limited, cancel := context.WithTimeout(ctx, req.Timeout+execGrace)
	defer cancel()
	streams := newExecStreams(call.vars["channel"], req)
	begun := time.Now()
	_, err = b.client.Run(limited, remote.Command{Script: call.script, Vars: call.vars, Stdin: req.Stdin,
		Stdout: streams.stdout, Stderr: streams.stderr, TTY: req.TTY, Raw: true})
	if err != nil && limited.Err() != nil {
		b.endCommand(ctx, call)
		err = givenUp(ctx, err)
	}
	result, err := streams.result(err, req)
	result.Duration = time.Since(begun)
	return result, err
}

// insideCall is one script that goes into a service.
type insideCall struct {
	script string
	vars   map[string]string
}

var serviceName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)

// enter prepares a call into a service of the sandbox that h points to.
func (b *Backend) enter(ctx context.Context, h extensions.Handle, service string) (insideCall, error) {
	if err := ctx.Err(); err != nil {
		return insideCall{}, err
	}
	at, err := b.resolve(h)
	if err != nil {
		return insideCall{}, err
	}
	if service != "" && !serviceName.MatchString(service) {
		return insideCall{}, extensions.Errorf(extensions.KindInvalid, "%q is not a service's name", extensions.Clean(service, 80)).At("service")
	}
	return insideCall{vars: map[string]string{"root": at.root, "account": b.settings.account, "id": string(at.id),
		"lock_wait": lockWaitShort, "service": service, "channel": newNonce()}}, nil
}

// command makes the call one that runs req.
func (c *insideCall) command(req extensions.ExecRequest) error {
	var words strings.Builder
	words.WriteString("set --")
	for _, a := range req.Argv() {
		words.WriteString(" " + remote.Quote(a))
	}
	c.script = words.String() + "\n" + script("toolbox", "inside", "exec")
	file, exported, err := envFor(req.Env, c.vars)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"dir": req.Dir, "login": req.User, "mark": newNonce(), "environment": file, "exported": exported,
		"input": flag(req.Stdin != nil || req.TTY != nil), "terminal": flag(req.TTY != nil), "cancel": "",
		"limit":    strconv.FormatFloat(max(req.Timeout.Seconds(), 0.001), 'f', 3, 64),
		"limit_up": strconv.FormatInt(max(int64(math.Ceil(req.Timeout.Seconds())), 1), 10),
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

// endCommand kills what a call that was given up left running inside.
func (b *Backend) endCommand(ctx context.Context, call insideCall) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	vars := map[string]string{"cancel": "1", "channel": newNonce()}
	for _, name := range []string{"root", "account", "id", "service", "mark"} {
		vars[name] = call.vars[name]
	}
	// A host that cannot be asked now ends the command itself, at its limit.
	_, _ = b.client.Run(ctx, remote.Command{Script: script("toolbox", "inside", "exec"), Vars: vars})
}

// givenUp is the error of a call whose time ran out or whose caller went away.
func givenUp(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return extensions.Errorf(extensions.KindInterrupted, "the command was given up and ended: %w", err)
	case ctx.Err() != nil:
		return extensions.Errorf(extensions.KindTimeout, "the command was ended when the call's own time was over: %w", ctx.Err())
	}
	return extensions.Errorf(extensions.KindTimeout, "the command's time was over and the host did not answer: %w", err).
		WithRemedy("look at the host; the command may still run there")
}

// execStreams takes a command's streams apart.
type execStreams struct {
	stdout, stderr io.Writer
	terminal       bool
	channel        *channel
	heads          [2]*refusal
	kept           [2]*extensions.Capture
	end            *said
	failed         *failure
}

func newExecStreams(nonce string, req extensions.ExecRequest) *execStreams {
	s := &execStreams{terminal: req.TTY != nil, kept: [2]*extensions.Capture{{Live: req.Stdout}, {Live: req.Stderr}}}
	for i := range s.heads {
		s.heads[i] = &refusal{out: s.kept[i]}
	}
	s.stdout, s.stderr = s.heads[0], s.heads[1]
	spoken := &s.stderr
	if s.terminal { // both streams arrive as one
		spoken = &s.stdout
	}
	s.channel = newChannel(nonce, *spoken, func(m said) {
		switch {
		case m.Failure != nil:
			s.failed = m.Failure
		case m.Exit != nil:
			s.end = &m
		}
	})
	*spoken = s.channel
	return s
}

func (s *execStreams) result(err error, req extensions.ExecRequest) (extensions.ExecResult, error) {
	s.channel.end()
	r := extensions.ExecResult{Merged: s.terminal}
	switch {
	case s.end != nil && err == nil:
		err = s.judge(&r, req)
	case s.failed != nil && err == nil:
		err = s.failed.classify()
	case err == nil:
		err = extensions.Errorf(extensions.KindIndeterminate, "the host ended the command's script without a result").
			WithRemedy("look at the host: its memory, its disk, what ended the script")
	}
	for _, head := range s.heads {
		_ = head.flush()
	}
	r.Stdout, r.StdoutTruncated = s.kept[0].Kept.Bytes(), s.kept[0].Cut
	r.Stderr, r.StderrTruncated = s.kept[1].Kept.Bytes(), s.kept[1].Cut
	return r, err
}

func (s *execStreams) judge(r *extensions.ExecResult, req extensions.ExecRequest) error {
	r.ExitCode = *s.end.Exit
	if s.end.Timeout {
		return extensions.Errorf(extensions.KindTimeout, "the command was ended after its timeout of %s", req.Timeout).
			WithRemedy("raise the timeout, or run it in the background")
	}
	for _, head := range s.heads {
		text := head.judge(r.ExitCode, s.end.State, req.User)
		if text == "" {
			continue
		}
		code, reason, err := notStarted(text, s.end.State, s.end.Service, req)
		if err != nil {
			return err
		}
		r.ExitCode = code
		to := s.kept[1]
		if s.terminal {
			to = s.kept[0]
		}
		_, _ = io.WriteString(to, reason)
	}
	return nil
}
