package vercel

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/oidc"
)

const (
	vendor = "Vercel"

	credentialOIDC    = "oidc_token"
	credentialToken   = "token"
	credentialTeam    = "team_id"
	credentialProject = "project_id"

	fieldPlan    = "plan"
	fieldAPI     = "api_url"
	fieldRegion  = "region"
	fieldRuntime = "runtime"
	fieldImage   = "image"

	defaultAPI = "https://vercel.com/api"
	// memoryPerCPU is in MiB; defaultCPU is what the vendor gives to whom does not ask, in vCPU.
	memoryPerCPU = 2048
	defaultCPU   = 2
)

// plan is what the vendor allows a team. Sources: https://vercel.com/docs/vercel-sandbox/pricing and the README of
// @vercel/sandbox 3.5.0, read on 2026-11-23; vercel/sandbox#231 for 24 h.
type plan struct {
	longest time.Duration // of a sandbox
	most    int64         // sandboxes at once
	cpus    int64         // the largest sandbox, in vCPU
	rate    rate.Limit    // new vCPUs per second
	burst   int           // new vCPUs at once
}

var (
	planNames = []string{"hobby", "pro", "enterprise"}
	plans     = map[string]plan{
		"hobby":      {45 * time.Minute, 10, 4, rate.Every(10 * time.Minute / 40), 40},
		"pro":        {24 * time.Hour, 2000, 8, rate.Every(time.Minute / 200), 200},
		"enterprise": {24 * time.Hour, 2000, 32, rate.Every(time.Minute / 400), 400},
	}
)

var configFields = []extensions.Field{
	{Name: fieldPlan, Type: extensions.FieldString, Enum: planNames,
		Doc: "The team's plan: `hobby` (the default) ends a sandbox after 45 min and allows 10 at once with 4 vCPU, `pro` 24 h, 2000 and 8, " +
			"`enterprise` 24 h, 2000 and 32."},
	{Name: fieldRegion, Type: extensions.FieldString, Doc: "Where sandboxes run, such as `fra1`; default: the vendor's own choice, `iad1`."},
	{Name: fieldAPI, Type: extensions.FieldString, Doc: "Address of the API; default: `" + defaultAPI + "`."},
}

var optionFields = []extensions.Field{
	{Name: fieldImage, Type: extensions.FieldString,
		Doc: "Image, one of the vendor's own or of the project's repository; default: the vendor's `universal` image."},
	{Name: fieldRuntime, Type: extensions.FieldString, Doc: "Runtime in place of an image, such as `node24` or `python3.13`."},
}

type settings struct {
	account string
	region  string // "" = the vendor's choice
	apiURL  string
	plan    plan
}

func parseConfig(cfg extensions.Config) (settings, error) {
	if err := extensions.CheckFields("config", configFields, cfg.Values); err != nil {
		return settings{}, err
	}
	return settings{account: cfg.Account, region: extensions.Text(cfg.Values, fieldRegion), plan: planOf(cfg.Values),
		apiURL: strings.TrimSuffix(cmp.Or(extensions.Text(cfg.Values, fieldAPI), defaultAPI), "/")}, nil
}

func planOf(values map[string]any) plan {
	return plans[cmp.Or(extensions.Text(values, fieldPlan), planNames[0])]
}

// identity is one project of one team, and the token that opens it.
type identity struct {
	token         extensions.Secret
	team, project string
}

// idName is the form of the vendor's ids.
var idName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// identify reads one whole set of credentials; an OIDC token says itself what it opens.
func identify(given map[string]extensions.Secret) (identity, error) {
	i := identity{token: given[credentialToken], team: given[credentialTeam].Reveal(), project: given[credentialProject].Reveal()}
	if i.token.IsZero() || i.team == "" || i.project == "" {
		var claims struct {
			Team    string `json:"owner_id"`
			Project string `json:"project_id"`
		}
		i.token = given[credentialOIDC]
		if i.token.IsZero() {
			return i, extensions.Errorf(extensions.KindUnauthorized, "there is no credential for %s", vendor).
				WithRemedy("set oidc_token (VERCEL_OIDC_TOKEN), or token with team_id and project_id")
		}
		oidc.Claims(i.token.Reveal(), &claims)
		i.team, i.project = claims.Team, claims.Project
	}
	if !idName.MatchString(i.team) || !idName.MatchString(i.project) {
		return i, extensions.Errorf(extensions.KindUnauthorized, "the credential for %s names no team and project", vendor).
			WithRemedy("pull a new OIDC token with `vercel env pull`, or set token with team_id (team_…) and project_id (prj_…)")
	}
	return i, nil
}
