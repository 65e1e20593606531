package openshell

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/pace"
)

const (
	vendor           = "OpenShell"
	credentialSecret = "oidc_client_secret" //nolint:gosec // its name

	fieldAddress   = "address"
	fieldTLS       = "tls_folder"
	fieldIssuer    = "oidc_issuer"
	fieldClient    = "oidc_client_id"
	fieldAudience  = "oidc_audience"
	fieldScopes    = "oidc_scopes"
	fieldWorkspace = "workspace"
	fieldImage     = "image"
	fieldDriver    = "driver"
	fieldArch      = "arch"
	fieldRegion    = "region"

	fieldHome     = "home"
	fieldWorkDir  = "workdir"
	fieldUser     = "user"
	fieldReadOnly = "read_only"
	fieldBinaries = "binaries"

	// defaultAddress and defaultTLS are those of the vendor's packages: its page on authentication, read on 2026-11-24.
	defaultAddress   = "https://127.0.0.1:17670"
	defaultTLS       = "~/.config/openshell/gateways/openshell/mtls"
	defaultClient    = "openshell-cli"
	defaultWorkspace = "default"
	defaultPerMinute = 60
	defaultHome      = "/sandbox"
	defaultUser      = "sandbox"
	// defaultFixed is the workspace of a profile that may only read it: outside of what may be written.
	defaultFixed = "/workspace"

	driverVM = "vm"
)

var (
	drivers = []string{"docker", "podman", "kubernetes", driverVM}
	arches  = []string{"amd64", "arm64"}
	// defaultReadOnly are the vendor's own, as far as each image has them: a path that is missing keeps a sandbox from starting.
	defaultReadOnly = []string{"/bin", "/dev/urandom", "/etc", "/lib", "/proc", "/usr"}
	everyBinary     = []string{"/**"}
)

// workspaceName is what the gateway takes as a workspace: a DNS label.
var workspaceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

var configFields = []extensions.Field{
	{Name: fieldAddress, Type: extensions.FieldString,
		Doc: "Address of the gateway; default: `" + defaultAddress + "`. Plain http works only for this machine."},
	{Name: fieldTLS, Type: extensions.FieldString,
		Doc: "Folder with `ca.crt`, `tls.crt` and `tls.key` of the vendor's command line; default, unless `oidc_issuer` is set: `" +
			defaultTLS + "`. With an OIDC client `ca.crt` is enough."},
	{Name: fieldIssuer, Type: extensions.FieldString,
		Doc: "OIDC issuer that the gateway trusts; it needs the credential `" + credentialSecret + "`."},
	{Name: fieldClient, Type: extensions.FieldString, Doc: "The OIDC client; default: `" + defaultClient + "`."},
	{Name: fieldAudience, Type: extensions.FieldString, Doc: "Audience of the token; default: the issuer's own choice."},
	{Name: fieldScopes, Type: extensions.FieldStrings,
		Doc: "Scopes of the token, such as `sandbox:read`, `sandbox:write` and `config:read`; default: the issuer's own choice."},
	{Name: fieldWorkspace, Type: extensions.FieldString, Form: workspaceName,
		Doc: "The gateway's workspace, of lower-case letters, digits and dashes; default: `" + defaultWorkspace + "`."},
	{Name: fieldImage, Type: extensions.FieldString,
		Doc: "Image for profiles that name none; default: the gateway's. It needs `/bin/sh` and `tar`."},
	{Name: fieldDriver, Type: extensions.FieldString, Enum: drivers,
		Doc: "Driver with which the gateway creates sandboxes. Sizes hold only if this is set and is not `vm`, which ignores them."},
	{Name: fieldArch, Type: extensions.FieldString, Enum: arches, Doc: "Architecture of the gateway's machines; default: `amd64`."},
	{Name: fieldRegion, Type: extensions.FieldString,
		Doc: "Where the gateway's machines are. Without it, profiles that require a region do not run here."},
	pace.Field(defaultPerMinute, ""),
}

var optionFields = []extensions.Field{
	{Name: fieldHome, Type: extensions.FieldPath,
		Doc: "The image's folder that the sandbox's user may write to; default: `" + defaultHome + "`."},
	{Name: fieldWorkDir, Type: extensions.FieldPath,
		Doc: "The workspace; default: `workspace` in `home`, and for `access: ro` `" + defaultFixed + "`. Outside of `home` " +
			"the image must have it."},
	{Name: fieldUser, Type: extensions.FieldString,
		Doc: "User that everything runs as: `" + defaultUser + "` (the default), if the image has it, or a number other than 0."},
	{Name: fieldReadOnly, Type: extensions.FieldStrings,
		Doc: "Readable paths besides `home`, `/tmp` and the workspace. The image must have each of them. Default: `" +
			strings.Join(defaultReadOnly, "`, `") + "`."},
	{Name: fieldBinaries, Type: extensions.FieldStrings,
		Doc: "Programs, by their paths inside, that may use the network where `network.egress` allows it; `**` matches any part. " +
			"Default: all programs."},
}

type settings struct {
	account, address, tls    string
	issuer, client, audience string
	scopes                   []string
	workspace, image         string
	driver                   string
}

func parseConfig(cfg extensions.Config) (settings, error) {
	if err := extensions.CheckFields("config", configFields, cfg.Values); err != nil {
		return settings{}, err
	}
	v := cfg.Values
	s := settings{account: cfg.Account, address: cmp.Or(extensions.Text(v, fieldAddress), defaultAddress), tls: extensions.Text(v, fieldTLS),
		issuer: extensions.Text(v, fieldIssuer), client: cmp.Or(extensions.Text(v, fieldClient), defaultClient),
		audience: extensions.Text(v, fieldAudience), scopes: extensions.Strings(v[fieldScopes]),
		workspace: cmp.Or(extensions.Text(v, fieldWorkspace), defaultWorkspace), image: extensions.Text(v, fieldImage),
		driver: extensions.Text(v, fieldDriver)}
	if s.tls == "" && s.issuer == "" && strings.HasPrefix(s.address, "https:") {
		s.tls = defaultTLS
	}
	return s, nil
}

// layout is where a new sandbox has what.
type layout struct {
	home, workDir string   // workDir "" = none
	readOnly      []string // besides the workspace
	user          string
}

func layoutOf(spec extensions.Spec) layout {
	o := spec.Options
	l := layout{home: clean(cmp.Or(extensions.Text(o, fieldHome), defaultHome)), user: cmp.Or(extensions.Text(o, fieldUser), defaultUser),
		readOnly: slices.Sorted(slices.Values(extensions.Strings(o[fieldReadOnly], defaultReadOnly...)))}
	switch dir := extensions.Text(o, fieldWorkDir); {
	case spec.Workspace.Access == extensions.AccessNone:
	case dir != "":
		l.workDir = clean(dir)
	case spec.Workspace.Access == extensions.AccessRO:
		l.workDir = defaultFixed
	default:
		l.workDir = path.Join(l.home, "workspace")
	}
	return l
}

// clean leaves a relative path as it is, for check to refuse.
func clean(at string) string {
	if path.IsAbs(at) {
		return path.Clean(at)
	}
	return at
}

// within reports whether a path is a folder or below it.
func within(at, folder string) bool { return at == folder || strings.HasPrefix(at, folder+"/") }
