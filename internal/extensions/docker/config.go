package docker

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Defaults of the binding's config and of a profile's options.
const (
	defaultSocket     = "/var/run/docker.sock"
	defaultSubnets    = "10.214.0.0/16"
	defaultSubnetSize = 28
	defaultUser       = "1000:1000"
	defaultWorkspace  = "/workspace"
	defaultMemoryMB   = 4096 // of a sandbox whose profile says nothing, swap included
	connectTimeout    = 15 * time.Second

	buildNetworkDefault = "default"
	builderBuildKit     = "buildkit"
)

// grantable are the capabilities that a profile may ask for: of Docker's own set, those without effect beyond
// the container.
var grantable = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETPCAP", "SETUID"}

var configFields = []extensions.Field{
	{Name: "endpoint", Type: extensions.FieldString,
		Doc: "The engine's address on this machine: `unix:///path`, `npipe:////./pipe/name` or `tcp://host:port` with TLS; default: " +
			"`DOCKER_HOST`, else the first socket of Docker, rootless Docker and Docker Desktop."},
	{Name: "socket", Type: extensions.FieldString, Doc: "The engine's socket on an SSH host; default `/var/run/docker.sock`."},
	{Name: "default_image", Type: extensions.FieldString,
		Doc: "Image for profiles without `image` or `containers`; without it they are refused."},
	{Name: "subnets", Type: extensions.FieldStrings, Doc: "IPv4 ranges for the sandboxes' networks; default `10.214.0.0/16`."},
	{Name: "subnet_size", Type: extensions.FieldInt, Doc: "Prefix length of one network, 20 to 29; default 28."},
	{Name: "max_sandboxes", Type: extensions.FieldInt,
		Doc: "Most sandboxes of this binding at once on one engine, with paused ones and those being made; default: no limit."},
}

var credentialFields = []extensions.CredentialField{
	{Name: "ca", Doc: "Certificate authority of a TLS endpoint, PEM."},
	{Name: "cert", Doc: "Client certificate for a TLS endpoint, PEM."},
	{Name: "key", Doc: "Private key of the client certificate, PEM."},
}

var optionFields = []extensions.Field{
	{Name: "user", Type: extensions.FieldString,
		Doc: "User of the containers, by name or as `uid:gid`, root only as `root` or 0; default: the image's, or `1000:1000` if that " +
			"would be root on the host."},
	{Name: "cap_add", Type: extensions.FieldStrings, Doc: "Capabilities to keep, of " + strings.Join(grantable, ", ") + "; default: none."},
	{Name: "build_network", Type: extensions.FieldString, Enum: []string{"none", buildNetworkDefault},
		Doc: "Network of image builds; default `default` where the profile allows the network, else `none`."},
	{Name: "builder", Type: extensions.FieldString, Enum: []string{"classic", builderBuildKit},
		Doc: "Image builder: `classic`, which limits each step, or `buildkit` where the engine has it, which does not; default " +
			"`classic`."},
	{Name: "workspace_path", Type: extensions.FieldString, Doc: "Where the workspace is inside; default `/workspace`."},
}

// settings is the checked config of a backend.
type settings struct {
	binding      string
	account      string
	stateDir     string // has the proofs of engines; "" = none are kept
	host         string // name of the placement host, may be empty
	endpoint     string // "" = found out
	socket       string
	defaultImage string
	subnets      []netip.Prefix
	subnetSize   int
	max          int64 // of the binding; 0 = no bound
	hostMax      int64 // of the whole host; 0 = no bound
}

type options struct {
	user         string
	capAdd       []string
	workspace    string
	buildNetwork string // "" = the network's default
	builder      string // "" = classic
}

func parseConfig(cfg extensions.Config) (settings, error) {
	if err := extensions.CheckFields("config", configFields, cfg.Values); err != nil {
		return settings{}, err
	}
	s := settings{binding: cfg.Binding, account: cfg.Account, stateDir: cfg.StateDir, socket: defaultSocket}
	s.endpoint, _ = cfg.Values["endpoint"].(string)
	s.defaultImage, _ = cfg.Values["default_image"].(string)
	if v, ok := cfg.Values["socket"].(string); ok {
		s.socket = v
	}
	s.max = extensions.Whole(cfg.Values["max_sandboxes"], 0)
	s.subnetSize = int(extensions.Whole(cfg.Values["subnet_size"], defaultSubnetSize))
	if h := cfg.Host; h != nil {
		s.host = h.Name
		if c := h.Capacity; c != nil {
			s.hostMax = max(c.MaxSandboxes, 0)
		}
	}
	if err := s.check(); err != nil {
		return s, err
	}
	return s, s.parseSubnets(cfg.Values["subnets"])
}

func (s settings) check() error {
	invalid := func(format string, args ...any) *extensions.Error {
		return extensions.Errorf(extensions.KindInvalid, format, args...)
	}
	if !path.IsAbs(s.socket) || strings.ContainsFunc(s.socket, isControl) {
		return invalid("config.socket: %q is not an absolute path", s.socket)
	}
	if s.max < 0 {
		return invalid("config.max_sandboxes: %d is negative", s.max)
	}
	if s.subnetSize < 20 || s.subnetSize > 29 {
		return invalid("config.subnet_size: %d is not between 20 and 29", s.subnetSize)
	}
	return checkEndpoint("config.endpoint", s.endpoint)
}

// checkEndpoint accepts "" and the schemes that an engine on or from this machine has.
func checkEndpoint(at, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || !slices.Contains([]string{"unix", "npipe", "tcp"}, u.Scheme) || u.User != nil || strings.ContainsFunc(text, isControl) {
		return extensions.Errorf(extensions.KindInvalid, "%s: %q is not unix:///path, npipe:////./pipe/name or tcp://host:port", at,
			extensions.Clean(text, 200)).
			WithRemedy("for an engine behind SSH, give the sandbox a sandboxer_host with ssh = {…}")
	}
	return nil
}

func (s *settings) parseSubnets(v any) error {
	for _, text := range extensions.Strings(v, defaultSubnets) {
		p, err := netip.ParsePrefix(text)
		if err != nil || !p.Addr().Is4() || p != p.Masked() || p.Bits() < 8 || p.Bits() > s.subnetSize {
			return extensions.Errorf(extensions.KindInvalid, "config.subnets: %q is not an IPv4 range between /8 and /%d", text, s.subnetSize).
				WithRemedy("write it like 10.214.0.0/16, and choose a range that the machine's networks do not use")
		}
		s.subnets = append(s.subnets, p)
	}
	return nil
}

func parseOptions(values map[string]any) (options, error) {
	o := options{workspace: defaultWorkspace}
	if err := extensions.CheckFields("options", optionFields, values); err != nil {
		return o, err
	}
	o.user, _ = values["user"].(string)
	o.buildNetwork, _ = values["build_network"].(string)
	o.builder, _ = values["builder"].(string)
	for _, c := range extensions.Strings(values["cap_add"]) {
		name := strings.TrimPrefix(strings.ToUpper(c), "CAP_")
		if !slices.Contains(grantable, name) {
			return o, extensions.Errorf(extensions.KindInvalid, "options.cap_add: %q cannot be granted", extensions.Clean(c, 40)).
				WithRemedy("choose from %s", strings.Join(grantable, ", "))
		}
		o.capAdd = append(o.capAdd, name)
	}
	if v, ok := values["workspace_path"].(string); ok {
		o.workspace = v
	}
	if p := o.workspace; !path.IsAbs(p) || path.Clean(p) != p || slices.Contains([]string{"/", "/proc", "/sys", "/dev", "/etc"}, p) ||
		strings.ContainsFunc(p, isControl) || strings.HasPrefix(p+"/", ownDir+"/") {
		return o, extensions.Errorf(extensions.KindInvalid, "options.workspace_path: %q cannot be the workspace", p).
			WithRemedy("use a clean absolute path such as /workspace or /src")
	}
	if strings.ContainsFunc(o.user, func(r rune) bool { return r <= 0x20 || r == 0x7f }) {
		return o, extensions.Errorf(extensions.KindInvalid, "options.user: %q is not a user", extensions.Clean(o.user, 80))
	}
	return o, nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }
