package docker

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxMessage bounds what an engine says in a message, in runes.
const maxMessage = 400

func failed(op string, id extensions.ID, err error) error {
	return extensions.Failed(op, id, err, classify)
}

// classify maps the errors of the engine's client. What was not sent is KindUnreachable; a call with an effect
// whose answer was lost is made KindIndeterminate by sent.
func classify(err error) *extensions.Error {
	said := errors.New(extensions.Clean(err.Error(), maxMessage))
	is := func(kind extensions.Kind) *extensions.Error { return &extensions.Error{Kind: kind, Err: said} }
	switch {
	case noEngine(err):
		return is(extensions.KindUnreachable).WithRemedy("%s", startDocker)
	case errdefs.IsNotFound(err):
		return is(extensions.KindNotFound)
	case errdefs.IsConflict(err):
		return is(extensions.KindConflict)
	case errdefs.IsUnauthorized(err), errdefs.IsPermissionDenied(err):
		return is(extensions.KindUnauthorized)
	case refusedCertificate(err):
		return is(extensions.KindUnauthorized).WithRemedy("check the credentials ca, cert and key of this extension")
	case errdefs.IsInvalidArgument(err):
		return is(extensions.KindInvalid)
	case errdefs.IsNotImplemented(err):
		return is(extensions.KindUnsupported)
	case errdefs.IsUnavailable(err):
		return is(extensions.KindUnavailable)
	case errors.Is(err, syscall.ENOSPC):
		return is(extensions.KindExhausted).WithRemedy("free some disk space where the engine runs")
	case lost(err):
		return is(extensions.KindUnreachable).WithRemedy("check the Docker engine and the connection to it")
	}
	return is(extensions.KindInternal)
}

const startDocker = "start the Docker engine, or install it; if it is elsewhere, set DOCKER_HOST or config.endpoint of the binding, " +
	"or give the sandbox a sandboxer_host"

// refusedCertificate reports that one side does not trust the other's.
func refusedCertificate(err error) bool {
	var ours *tls.CertificateVerificationError
	var theirs tls.AlertError
	return errors.As(err, &ours) || errors.As(err, &theirs) || strings.Contains(err.Error(), "remote error: tls: ")
}

// noEngine reports that the engine was not reached, so nothing was sent.
func noEngine(err error) bool {
	var op *net.OpError
	return errors.As(err, &notDialed{}) || errors.As(err, &op) && op.Op == "dial"
}

// lost reports a connection that broke.
func lost(err error) bool {
	var n net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.As(err, &n)
}

// asked classifies the error of a call without an effect.
func asked(err error) error {
	if noEngine(err) {
		return err
	}
	return failed("", "", err)
}

// sent is the error of a call that changes something: once it may have arrived, a broken connection does not
// tell whether it had an effect.
func sent(err error) error {
	var known *extensions.Error
	if err == nil || noEngine(err) || errors.As(err, &known) || !lost(err) && !errors.Is(err, context.Canceled) {
		return err
	}
	return extensions.Errorf(extensions.KindIndeterminate, "the answer of the Docker engine was lost: %s",
		extensions.Clean(err.Error(), maxMessage))
}
