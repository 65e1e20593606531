package daytona

import (
	"net/http"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// tell gives the error of a verb that returns the contract's type: the client of the vendor has classified it by judge.
func tell(op string, id extensions.ID, err *error) { *err = extensions.Failed(op, id, *err, nil) }

// judge is the vendor's own meaning of an error answer. Only this file reads its texts.
func judge(a rest.Answer) (extensions.Kind, string) {
	text := a.Message()
	switch {
	case a.Status == http.StatusBadRequest && strings.Contains(text, "limit exceeded") && strings.Contains(text, "Maximum allowed"):
		return extensions.KindExhausted, "destroy a sandbox of this organization, or raise its limits"
	case a.Status == http.StatusBadRequest && strings.Contains(text, "state change in progress"):
		return extensions.KindUnavailable, "try again when it has settled"
	}
	return "", ""
}

// judgeInside is the meaning of an error answer on the way to a toolbox: what it lacks is a file, never the sandbox.
func judgeInside(a rest.Answer) (extensions.Kind, string) {
	switch {
	case a.Status == http.StatusBadGateway:
		return extensions.KindIndeterminate, "check the sandbox's state"
	case a.Status == http.StatusBadRequest && strings.HasSuffix(a.Message(), "Is the Sandbox started?"):
		return extensions.KindUnavailable, "check the sandbox's state"
	}
	return "", ""
}

// notHere reports whether a create was refused for a snapshot or a region that the vendor does not have.
func notHere(a rest.Answer) bool {
	text := a.Message()
	return a.Own && (a.Status == http.StatusBadRequest || a.Status == http.StatusNotFound) && strings.Contains(text, "not found") &&
		(strings.HasPrefix(text, "Snapshot") || strings.HasPrefix(text, "Region"))
}
