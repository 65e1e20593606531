package vercel

import (
	"net/http"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// failed is extensions.Failed: the client of the vendor classifies by judge.
func failed(op string, id extensions.ID, err error) error { return extensions.Failed(op, id, err, nil) }

// named is failed for a deferred call.
func named(op string, id extensions.ID, err *error) { *err = failed(op, id, *err) }

// judge is the vendor's own meaning of an error answer.
func judge(a rest.Answer) (extensions.Kind, string) {
	switch code, _ := a.Said(); {
	case code == "sandbox_timeout_invalid":
		return extensions.KindUnsupported, "shorten ttl; if the team's plan allows more, set `plan` in the binding's config to that plan"
	case code == "sandbox_stopping", code == "sandbox_snapshotting":
		return extensions.KindUnavailable, "it is being stopped: check it again"
	case a.Status == http.StatusTooManyRequests && !a.Told: // the rate limit says when to come again, the quota cannot
		return extensions.KindExhausted, "destroy a sandbox of this team, or raise its plan's limit"
	}
	return "", ""
}

// noProject is the error of a call to which only a project that is not there answers "not found".
func noProject(err error) error {
	return extensions.Errorf(extensions.KindUnauthorized, "the credential has no such project: %w", err).
		WithRemedy("check project_id and team_id")
}
