package httpledger

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Why a server lets nobody in for now.
var (
	errTooMany   = errors.New("this token asks too often")
	errVerifying = errors.New("the ledger is being verified for others")
)

// turnedAway is a refusal before the ledger was asked.
func turnedAway(after time.Duration, why error, remedy string) error {
	return &extensions.Error{Kind: extensions.KindUnavailable, Op: "ledger", RetryAfter: after, Err: why, Remedy: remedy}
}

// inner are failures of the ledger itself, which say where it is kept and how.
var inner = []extensions.Kind{extensions.KindInternal, extensions.KindUnavailable, extensions.KindTimeout, extensions.KindIndeterminate}

// discreet is an error as a client may hear it: what fails behind the server is
// for the server's log, by the request's id. The kind and the wait stay.
func (s *Server) discreet(err error, request string) error {
	kind := extensions.KindOf(err)
	if kind == extensions.KindInterrupted { // the server stops: to the client it does not answer
		kind, err = extensions.KindTimeout, oops(extensions.KindTimeout, "%w", err)
	}
	if err == nil || s.Plain || !slices.Contains(inner, kind) || errors.Is(err, errTooMany) || errors.Is(err, errVerifying) {
		return err
	}
	s.Log.Error("failed", slog.String("id", request), slog.String("error", err.Error()), slog.String("remedy", extensions.RemedyOf(err)))
	text, remedy := "the server's ledger failed", "tell who runs the server: its log has the cause under "+request
	switch kind {
	case extensions.KindUnavailable, extensions.KindTimeout:
		text, remedy = "the server's ledger does not answer", "run again later; if that does not help, "+remedy
	case extensions.KindIndeterminate:
		text, remedy = "whether the server's ledger recorded it is not known", "run again; if that does not help, "+remedy
	}
	out := oops(kind, "%s (request %s)", text, request).WithRemedy("%s", remedy)
	var told *extensions.Error
	if errors.As(err, &told) {
		out.RetryAfter = told.RetryAfter
	}
	return out
}
