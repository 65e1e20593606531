package remote

import (
	"context"
	"errors"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// startedError marks errors after which the script may have started.
type startedError struct{ err error }

func (e *startedError) Error() string { return e.err.Error() }
func (e *startedError) Unwrap() error { return e.err }

// MayHaveStarted reports whether, after err from Run or Call, the script may have started. That includes
// errors the script itself answered with.
func MayHaveStarted(err error) bool {
	var e *startedError
	return errors.As(err, &e)
}

func started(kind extensions.Kind, format string, args ...any) *extensions.Error {
	e := extensions.Errorf(kind, format, args...)
	e.Err = &startedError{e.Err}
	return e
}

// ctxKind returns the kind for a ctx that has ended.
func ctxKind(ctx context.Context, canceled extensions.Kind) extensions.Kind {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return extensions.KindTimeout
	}
	return canceled
}

// notStarted returns the error for a ctx that ended before anything was sent.
func (h *host) notStarted(ctx context.Context) error {
	return extensions.Errorf(ctxKind(ctx, extensions.KindInterrupted), "nothing was started on %s: %w", h.name, context.Cause(ctx))
}

func (h *host) interrupted(why error) error {
	return extensions.Errorf(extensions.KindInterrupted, "nothing was started on %s: %w", h.name, why)
}

// openError says why no session runs our command line.
func (h *host) openError(ctx context.Context, err error) error {
	var no *refusal
	switch {
	case ctx.Err() != nil:
		return h.notStarted(ctx)
	case errors.As(err, &no) && no.what == "pty-req":
		return extensions.Errorf(extensions.KindUnsupported, "%s provides no terminal", h.name).
			WithRemedy("set PermitTTY yes in the host's sshd_config, or do without a terminal")
	case errors.As(err, &no):
		return extensions.Errorf(extensions.KindUnsupported, "%s runs no commands: %w", h.name, err).
			WithRemedy("give the account a login shell and let its key run commands (no restricted subsystem)")
	}
	e := extensions.Errorf(extensions.KindUnreachable, "%s: nothing was started: %w", h.name, err).
		WithRemedy("check that the host is up and its sshd answers")
	if errors.Is(err, errNoAnswer) {
		e.RetryAfter = silentAgain
	}
	return e
}

// explain turns the error of a run into the caller's.
func (j *job) explain(ctx context.Context, exit int, err error) error {
	h := j.client.host
	begun := j.hasBegun()
	maybe := begun || j.handed.Load()
	switch {
	case err == nil && begun:
		return j.payloadError()
	case err == nil && (!maybe || j.out.atEnd()), errors.Is(err, errNoStatus) && !maybe:
		return j.noShell(exit, err)
	case err == nil:
		err = errNotBegun
	case ctx.Err() != nil && !maybe:
		return h.notStarted(ctx)
	case ctx.Err() != nil:
		return started(ctxKind(ctx, extensions.KindIndeterminate), "a script on %s %s, and sandboxer no longer waits for it: %w", h.name,
			phase(begun), context.Cause(ctx))
	case !maybe:
		return extensions.Errorf(extensions.KindUnreachable, "%s: nothing was started: %w", h.name, err).
			WithRemedy("check that the host is up and its sshd answers")
	}
	e := started(extensions.KindIndeterminate, "a script on %s %s, and its outcome is unknown: %w", h.name, phase(begun), err)
	if !begun {
		e = e.WithRemedy("log in with ssh and check what the account's shell prints or waits for")
	}
	return e
}

func phase(begun bool) string {
	if begun {
		return "was started"
	}
	return "may have been started"
}

// payloadError is set if our own reader failed: the script saw a short payload.
func (j *job) payloadError() error {
	p := j.stdinErr.Load()
	if p == nil {
		return nil
	}
	return started(extensions.KindIndeterminate, "the input for a script on %s could not be read here: %w", j.client.host.name, *p)
}

// noShell returns the error for a session that ended, with exit, without our mark: something other than sh
// took the command line.
func (j *job) noShell(exit int, err error) error {
	said := strings.TrimSpace(j.err.open.seen() + "\n" + j.out.open.seen())
	text := "it said nothing"
	if said != "" {
		text = "it said: " + extensions.LastLines(said, 500)
	}
	cause := errNotBegun
	if err != nil {
		cause = err
	}
	if exit == notRead {
		text = "the script did not arrive completely; " + text
	}
	return extensions.Errorf(extensions.KindUnsupported, "the login shell of %s does not run commands (exit %d, %s): %w", j.client.host.name,
		exit, text, cause).
		WithRemedy("give the account a login shell such as /bin/sh, without a forced command, and keep its rc files from reading stdin and " +
			"from exiting")
}
