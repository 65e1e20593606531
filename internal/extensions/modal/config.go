package modal

import (
	"cmp"
	"regexp"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/pace"
)

const (
	vendor           = "Modal"
	credentialID     = "token_id"
	credentialSecret = "token_secret"

	fieldServer      = "server_url"
	fieldEnvironment = "environment"
	fieldApp         = "app"
	fieldImage       = "image"
	fieldRuntime     = "runtime"
	fieldPlan        = "plan"
	fieldPublic      = "public_ports"
	fieldWorkDir     = "workdir"

	defaultServer      = "https://api.modal.com:443"
	defaultEnvironment = "main"
	defaultApp         = "sandboxer"
	defaultImage       = "docker.io/library/debian:12-slim"
	defaultWorkDir     = "/workspace"
	defaultPerMinute   = 60
	runtimeGVisor      = "gvisor"
	runtimeAny         = "any"
)

// plans have what the vendor lets run at once; an enterprise's contract says its own. Source: https://modal.com/pricing as
// https://github.com/api-evangelist/modal-labs has it, read on 2026-11-27. A create may come 30 times a second, the vendor
// told https://github.com/verl-project/uni-agent/pull/47.
var (
	planNames = []string{"starter", "team", "enterprise"}
	plans     = map[string]int64{"starter": 100, "team": 1000}
)

// objectName is what the vendor takes as a name of an object of its own, and objectWords says so.
var objectName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

const objectWords = "of letters, digits, dashes, periods and underscores"

var configFields = []extensions.Field{
	{Name: fieldEnvironment, Type: extensions.FieldString, Form: objectName,
		Doc: "The workspace's environment, " + objectWords + "; default: `" + defaultEnvironment + "`."},
	{Name: fieldApp, Type: extensions.FieldString, Form: objectName,
		Doc: "The app that holds the sandboxes, " + objectWords + "; default: `" + defaultApp + "`. It is created if missing."},
	{Name: fieldImage, Type: extensions.FieldString,
		Doc: "Image for profiles that name none; default: `" + defaultImage + "`. It needs `/bin/sh` and `tar`."},
	{Name: fieldRuntime, Type: extensions.FieldString, Enum: []string{runtimeGVisor, runtimeAny},
		Doc: "`gvisor` (the default) pins the runtime, a kernel in user space. With `any`, Modal chooses, and no more " +
			"than a container is promised."},
	{Name: fieldPlan, Type: extensions.FieldString, Enum: planNames,
		Doc: "The workspace's plan: `starter` (the default) allows 100 at once, `team` 1000, `enterprise` what " +
			"`capabilities.max_concurrent` of the binding says."},
	{Name: fieldPublic, Type: extensions.FieldStrings,
		Doc: "Ports that a tunnel opens to everybody, such as `[\"8080\"]`; default: none. The network must not be denied altogether."},
	pace.Field(defaultPerMinute, ""),
	{Name: fieldServer, Type: extensions.FieldString, Doc: "Address of the control plane; default: `" + defaultServer + "`."},
}

var optionFields = []extensions.Field{
	{Name: fieldWorkDir, Type: extensions.FieldPath,
		Doc: "The workspace, a folder that the image's user may create; default: `" + defaultWorkDir + "`."},
}

type settings struct {
	account, serverURL, environment, app, image, runtime string
	public                                               []int // ports that are open to everybody
}

func parseConfig(cfg extensions.Config) (settings, error) {
	if err := extensions.CheckFields("config", configFields, cfg.Values); err != nil {
		return settings{}, err
	}
	or := func(field, otherwise string) string { return cmp.Or(extensions.Text(cfg.Values, field), otherwise) }
	s := settings{account: cfg.Account, serverURL: or(fieldServer, defaultServer), environment: or(fieldEnvironment, defaultEnvironment),
		app: or(fieldApp, defaultApp), image: or(fieldImage, defaultImage), runtime: or(fieldRuntime, runtimeGVisor)}
	for _, text := range extensions.Strings(cfg.Values[fieldPublic]) {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return s, extensions.Errorf(extensions.KindInvalid, "config.%s: %q is no port", fieldPublic, extensions.Clean(text, 20))
		}
		s.public = append(s.public, int(port))
	}
	return s, nil
}
