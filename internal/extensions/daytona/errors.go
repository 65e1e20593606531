package daytona

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// failed is extensions.Failed: the client of the vendor classifies by judge.
func failed(op string, id extensions.ID, err error) error {
	return extensions.Failed(op, id, err, nil)
}

// said is the text of the vendor's error answer; "" for another shape.
func said(a rest.Answer) string {
	var e struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(a.Body, &e)
	return e.Message
}

// judge is the vendor's own meaning of an error answer. Only this file reads its texts.
func judge(a rest.Answer) (extensions.Kind, string) {
	text := said(a)
	switch {
	case a.Status == http.StatusBadRequest && strings.Contains(text, "limit exceeded") && strings.Contains(text, "Maximum allowed"):
		return extensions.KindExhausted, "destroy a sandbox of this organization, or raise its limits"
	case a.Status == http.StatusBadRequest && strings.Contains(text, "state change in progress"):
		return extensions.KindUnavailable, "try again when the sandbox has settled"
	}
	return "", ""
}

// judgeInside is the meaning of an error answer on the way to a toolbox: what it lacks is a file, never the sandbox.
func judgeInside(a rest.Answer) (extensions.Kind, string) {
	switch {
	case a.Status == http.StatusBadGateway:
		return extensions.KindIndeterminate, "look at the sandbox again"
	case a.Status == http.StatusBadRequest && strings.HasSuffix(said(a), "Is the Sandbox started?"):
		return extensions.KindUnavailable, "look at the sandbox again"
	}
	return "", ""
}

// notHere reports whether a create was refused for a snapshot or a region that the vendor does not have.
func notHere(a rest.Answer) bool {
	text := said(a)
	return a.Own && (a.Status == http.StatusBadRequest || a.Status == http.StatusNotFound) && strings.Contains(text, "not found") &&
		(strings.HasPrefix(text, "Snapshot") || strings.HasPrefix(text, "Region"))
}
