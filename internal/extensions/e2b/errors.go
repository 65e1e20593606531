package e2b

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// failed is extensions.Failed: the client of the vendor classifies by judge.
func failed(op string, id extensions.ID, err error) error {
	return extensions.Failed(op, id, err, nil)
}

// said is what the vendor's error answers contain.
func said(a rest.Answer) (e api.Error) {
	_ = json.Unmarshal(a.Body, &e) // what is of another shape says nothing
	return e
}

// judge is the vendor's own meaning of an error answer. Only this file reads its texts.
func judge(a rest.Answer) (extensions.Kind, string) {
	e := said(a)
	code := ""
	if e.ErrorCode != nil {
		code = *e.ErrorCode
	}
	switch {
	case code == "sandbox_capacity_unavailable", code == "sandbox_no_compatible_node":
		return extensions.KindExhausted, "choose another place, or try again later"
	case a.Status == http.StatusTooManyRequests && !a.Told: // the rate limit says when to come again, the quota cannot
		return extensions.KindExhausted, "destroy a sandbox of this team, or raise its plan's limit"
	case a.Status == http.StatusBadRequest && strings.Contains(e.Message, "cannot delete template"):
		return extensions.KindConflict, "first destroy the sandboxes created from it"
	case a.Status == http.StatusBadRequest && strings.Contains(e.Message, "Timeout cannot be greater"):
		return extensions.KindUnsupported, "shorten ttl; if the team's plan allows more, set `plan` in the binding's config to that plan"
	}
	return "", ""
}

// judgeInside is the meaning of an error answer of the daemon inside a sandbox.
func judgeInside(a rest.Answer) (extensions.Kind, string) {
	switch a.Status {
	case http.StatusInsufficientStorage:
		return extensions.KindExhausted, "use a template with a larger disk, or send less"
	case http.StatusBadGateway: // the vendor's proxy: the sandbox is not there, or no longer
		return extensions.KindUnavailable, "check the sandbox's state"
	}
	return "", ""
}

// refused is the error of a call into a sandbox, as a user or as its own, that broke or was refused. sent says
// that it may have arrived.
func refused(sent bool, user string, err error) error {
	said := errors.New(extensions.Clean(err.Error(), 300))
	var e *connect.Error
	own := errors.As(err, &e) && connect.IsWireError(err)
	switch {
	case !sent:
		return extensions.Errorf(extensions.KindUnreachable, "the sandbox at %s does not answer: %w", vendor, said).
			WithRemedy("check the network, and the address if you changed it")
	case own && e.Code() == connect.CodeUnauthenticated && user != "":
		return extensions.Errorf(extensions.KindUnsupported, "the sandbox cannot run commands as %q: %w", extensions.Clean(user, 80), said).
			At("user").WithRemedy("name a user that the template has")
	case own && e.Code() == connect.CodeUnauthenticated:
		return extensions.Errorf(extensions.KindUnauthorized, "the sandbox does not accept its token: %w", said)
	case own && e.Code() == connect.CodeInvalidArgument:
		return extensions.Errorf(extensions.KindInvalid, "the sandbox refuses it: %w", said)
	case own && e.Code() == connect.CodeResourceExhausted:
		late := extensions.Errorf(extensions.KindUnavailable, "the sandbox limits calls: %w", said)
		late.RetryAfter, _ = webcall.RetryAfter(e.Meta())
		return late
	}
	return extensions.Errorf(extensions.KindIndeterminate, "the connection to the sandbox broke: %w", said).
		WithRemedy("check whether it was done before you do it again")
}
