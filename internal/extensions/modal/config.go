package modal

import (
	"cmp"
	"path"
	"regexp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
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
	fieldRegion      = "region"
	fieldWorkDir     = "workdir"

	defaultServer      = "https://api.modal.com:443"
	defaultEnvironment = "main"
	defaultApp         = "sandboxer"
	defaultImage       = "docker.io/library/debian:12-slim"
	defaultWorkDir     = "/workspace"
	// unstated is the region of an account whose user does not say where it is: no profile can demand it.
	unstated = "unstated"

	runtimeGVisor = "gvisor"
	runtimeAny    = "any"
)

var configFields = []extensions.Field{
	{Name: fieldEnvironment, Type: extensions.FieldString, Doc: "The workspace's environment; default: `" + defaultEnvironment + "`."},
	{Name: fieldApp, Type: extensions.FieldString,
		Doc: "The app that has the sandboxes; default: `" + defaultApp + "`. It is made if it is missing."},
	{Name: fieldImage, Type: extensions.FieldString,
		Doc: "Image of sandboxes whose profile names none; default: `" + defaultImage + "`. It needs `/bin/sh` and `tar`."},
	{Name: fieldRuntime, Type: extensions.FieldString, Enum: []string{runtimeGVisor, runtimeAny},
		Doc: "`gvisor` (the default) pins the runtime, which is a kernel in user space. With `any`, Modal chooses, and no more " +
			"than a container is promised."},
	{Name: fieldRegion, Type: extensions.FieldString,
		Doc: "Where Modal runs this workspace's sandboxes, as it told you; sandboxer does not ask for regions. " +
			"Without it, no profile that demands a region runs here."},
	{Name: fieldServer, Type: extensions.FieldString, Doc: "Address of the control plane; default: `" + defaultServer + "`."},
}

var optionFields = []extensions.Field{
	{Name: fieldWorkDir, Type: extensions.FieldString,
		Doc: "The workspace, an absolute folder that the image's user may create; default: `" + defaultWorkDir + "`."},
}

type settings struct {
	account, serverURL, environment, app, image, runtime, region string
}

// objectName is what the vendor takes as a name of an object of its own.
var objectName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func parseConfig(cfg extensions.Config) (settings, error) {
	if err := extensions.CheckFields("config", configFields, cfg.Values); err != nil {
		return settings{}, err
	}
	or := func(field, otherwise string) string { return cmp.Or(extensions.Text(cfg.Values, field), otherwise) }
	s := settings{account: cfg.Account, serverURL: or(fieldServer, defaultServer), environment: or(fieldEnvironment, defaultEnvironment),
		app: or(fieldApp, defaultApp), image: or(fieldImage, defaultImage), runtime: or(fieldRuntime, runtimeGVisor),
		region: extensions.Text(cfg.Values, fieldRegion)}
	for field, name := range map[string]string{fieldEnvironment: s.environment, fieldApp: s.app} {
		if !objectName.MatchString(name) {
			return s, extensions.Errorf(extensions.KindInvalid, "config.%s: %q is no name at %s", field, extensions.Clean(name, 80), vendor).
				WithRemedy("use letters, digits, dashes, periods and underscores, at most 63")
		}
	}
	return s, nil
}

// workDirOf is the workspace of a new sandbox; "" = none.
func workDirOf(spec extensions.Spec) string {
	if spec.Workspace.Access == extensions.AccessNone {
		return ""
	}
	if d := extensions.Text(spec.Options, fieldWorkDir); d != "" {
		return path.Clean(d)
	}
	return defaultWorkDir
}
