package e2b

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

const (
	vendor        = "E2B"
	credentialKey = "api_key"

	fieldPlan     = "plan"
	fieldAPI      = "api_url"
	fieldSandbox  = "sandbox_url"
	fieldDomain   = "domain"
	fieldRegion   = "region"
	fieldTemplate = "template"
	fieldWorkDir  = "workdir"

	defaultDomain   = "e2b.app"
	defaultTemplate = "base"
	defaultWorkDir  = "/home/user/workspace"
)

// plan is what the vendor allows an account. Source: https://e2b.dev/docs/billing and /docs/sandbox/rate-limits,
// read on 2026-11-20.
type plan struct {
	longest time.Duration // of a sandbox
	most    int64         // sandboxes at once
	creates float64       // per second
}

var (
	planNames = []string{"hobby", "pro"}
	plans     = map[string]plan{"hobby": {time.Hour, 20, 1}, "pro": {24 * time.Hour, 100, 5}}
)

var configFields = []extensions.Field{
	{Name: fieldPlan, Type: extensions.FieldString, Enum: planNames,
		Doc: "The team's plan: `hobby` (the default) ends a sandbox after 1 h and allows 20 at once, `pro` 24 h and 100."},
	{Name: fieldTemplate, Type: extensions.FieldString,
		Doc: "Template for profiles that name none; default: `" + defaultTemplate + "`."},
	{Name: fieldRegion, Type: extensions.FieldString,
		Doc: "Region of this team's sandboxes, as the vendor told you; its API can neither set nor show it. " +
			"Without it, profiles that require a region do not run here."},
	{Name: fieldDomain, Type: extensions.FieldString,
		Doc: "The vendor's domain, or that of a compatible server; default: `E2B_DOMAIN`, else `" + defaultDomain + "`."},
	{Name: fieldAPI, Type: extensions.FieldString,
		Doc: "Address of the control plane; default: `E2B_API_URL`, else `https://api.` and the domain."},
	{Name: fieldSandbox, Type: extensions.FieldString,
		Doc: "Address of the proxy in front of all sandboxes; default: `E2B_SANDBOX_URL`, else what the domain implies."},
}

var optionFields = []extensions.Field{
	{Name: fieldTemplate, Type: extensions.FieldString, Doc: "Name or ID of the template; it sets the size."},
	{Name: fieldWorkDir, Type: extensions.FieldPath,
		Doc: "The workspace, a folder that the template's user may create; default: `" + defaultWorkDir + "`."},
}

type settings struct {
	account    string
	template   string
	region     string
	domain     string
	apiURL     string
	sandboxURL string // "" = by domain
	plan       plan
}

var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?(:[0-9]{1,5})?$`)

func parseConfig(cfg extensions.Config) (settings, error) {
	if err := extensions.CheckFields("config", configFields, cfg.Values); err != nil {
		return settings{}, err
	}
	or := func(field, env, otherwise string) string {
		for _, v := range []string{extensions.Text(cfg.Values, field), os.Getenv(env), otherwise} {
			if v != "" {
				return strings.TrimSuffix(v, "/")
			}
		}
		return ""
	}
	s := settings{account: cfg.Account, region: extensions.Text(cfg.Values, fieldRegion), plan: planOf(cfg.Values)}
	s.template = or(fieldTemplate, "", defaultTemplate)
	s.domain = or(fieldDomain, "E2B_DOMAIN", defaultDomain)
	if !hostName.MatchString(s.domain) {
		return s, extensions.Errorf(extensions.KindInvalid, "config.domain: %q is not a domain", extensions.Clean(s.domain, 80))
	}
	s.apiURL = or(fieldAPI, "E2B_API_URL", "https://api."+s.domain)
	s.sandboxURL = or(fieldSandbox, "E2B_SANDBOX_URL", "")
	return s, nil
}

func planOf(values map[string]any) plan {
	p, ok := plans[extensions.Text(values, fieldPlan)]
	if !ok {
		return plans[planNames[0]]
	}
	return p
}

// templateOf is the template of a new sandbox.
func (s settings) templateOf(spec extensions.Spec) string {
	if t := extensions.Text(spec.Options, fieldTemplate); t != "" {
		return t
	}
	return s.template
}

// shared are the domains whose sandboxes answer behind one name, told apart by a header.
var shared = []string{"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev"}

// domainOf is the domain below which a sandbox answers; told is the one that the vendor told with it, if any.
func (s settings) domainOf(told *string) (string, error) {
	domain := cmp.Or(rest.Value(told), s.domain)
	if !hostName.MatchString(domain) {
		return "", extensions.Errorf(extensions.KindInternal, "%s names the domain %q for a sandbox", vendor, extensions.Clean(domain, 80))
	}
	return domain, nil
}

// envdURL is where the daemon of a sandbox answers.
func (s settings) envdURL(ref string, told *string) (string, error) {
	if s.sandboxURL != "" {
		return s.sandboxURL, nil
	}
	domain, err := s.domainOf(told)
	if err == nil && slices.Contains(shared, domain) {
		return "https://sandbox." + domain, nil
	}
	return "https://" + envdPort + "-" + ref + "." + domain, err
}
