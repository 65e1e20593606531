package composessh

import (
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Defaults of the binding's config and of a profile's options.
const (
	defaultConnectTimeout = 15 * time.Second
	defaultCreateTimeout  = 10 * time.Minute
	defaultSubnets        = "10.213.0.0/16"
	defaultSubnetSize     = 26
	defaultWorkspace      = "/workspace"
)

// What happens to the ports that a stack publishes.
const (
	publishAsWritten = "as-written"
	publishLoopback  = "loopback"
	publishNone      = "none"
)

var configFields = []extensions.Field{
	{Name: "root", Type: extensions.FieldString,
		Doc: "Folder on the host, absolute or starting with `~/`; default `~/.sandboxer` of the login."},
	{Name: "default_image", Type: extensions.FieldString,
		Doc: "Image for profiles without `image`, `compose` or `containers`, which run with only their workspace; without it the binding " +
			"refuses them."},
	{Name: "subnets", Type: extensions.FieldStrings, Doc: "IPv4 ranges for the sandboxes' networks; default `10.213.0.0/16`."},
	{Name: "subnet_size", Type: extensions.FieldInt, Doc: "Prefix length of one network, 20 to 29; default 26 (61 containers)."},
	{Name: "connect_timeout", Type: extensions.FieldDuration, Doc: "Time limit of a connection; default `15s`."},
	{Name: "create_timeout", Type: extensions.FieldDuration, Doc: "Time limit to pull and build a stack until it is healthy; default `10m`."},
	{Name: "stop_grace", Type: extensions.FieldDuration,
		Doc: "How long a teardown waits for containers to stop by themselves; default `0s`, which kills them at once."},
}

var optionFields = []extensions.Field{
	{Name: "allow", Type: extensions.FieldStrings, Doc: "Rules of the Compose policy to lift for this profile: `rule` or `rule:argument`."},
	{Name: "publish", Type: extensions.FieldString, Enum: []string{publishAsWritten, publishLoopback, publishNone},
		Doc: "Published ports: keep them as written (the policy still refuses public addresses), bind them to the host's loopback, or drop " +
			"them; default `loopback`, and `none` under default deny, where you forward ports instead."},
	{Name: "stop_grace", Type: extensions.FieldDuration, Doc: "Overrides the binding's `stop_grace`."},
	{Name: "build_network", Type: extensions.FieldString, Enum: []string{"none", "default"},
		Doc: "Network of image builds; default `default` where the profile allows the network, else `none`."},
	{Name: "workspace_path", Type: extensions.FieldString, Doc: "Where the workspace is mounted inside; default `/workspace`."},
}

// settings is the checked config of a backend.
type settings struct {
	binding        string
	account        string
	root           string // "" = ~/.sandboxer of the login
	defaultImage   string // "" = a profile must name what it runs
	subnets        []netip.Prefix
	subnetSize     int
	connectTimeout time.Duration
	createTimeout  time.Duration
	stopGrace      time.Duration
}

// options is the checked options section of a spec.
type options struct {
	allow         []string
	publish       string // "" = the network's default
	stopGrace     time.Duration
	buildNetwork  string // "" = the network's default
	workspacePath string
}

// parseConfig is parseBinding for a host that can be dialed.
func parseConfig(cfg extensions.Config) (settings, error) {
	s, err := parseBinding(cfg)
	if err != nil {
		return s, err
	}
	if cfg.Host == nil || cfg.Host.SSH == nil {
		name := "no host"
		if cfg.Host != nil {
			name = "the host " + strconv.Quote(cfg.Host.Name)
		}
		return settings{}, extensions.Errorf(extensions.KindInvalid, "Docker Compose over SSH needs a host with an ssh block; the sandbox has %s",
			name).
			WithRemedy("give the sandbox a sandboxer_host with ssh = {…}")
	}
	return s, nil
}

func parseBinding(cfg extensions.Config) (settings, error) {
	if err := extensions.CheckFields("config", configFields, cfg.Values); err != nil {
		return settings{}, err
	}
	s := settings{binding: cfg.Binding, account: cfg.Account}
	s.root, _ = cfg.Values["root"].(string)
	s.defaultImage, _ = cfg.Values["default_image"].(string)
	err := checkRoot(s.root)
	if err != nil {
		return s, err
	}
	for _, d := range []struct {
		key       string
		to        *time.Duration
		otherwise time.Duration
		least     time.Duration
	}{
		{"connect_timeout", &s.connectTimeout, defaultConnectTimeout, time.Millisecond},
		{"create_timeout", &s.createTimeout, defaultCreateTimeout, time.Second},
		{"stop_grace", &s.stopGrace, 0, 0},
	} {
		if *d.to, err = durationOf("config."+d.key, cfg.Values[d.key], d.otherwise, d.least); err != nil {
			return s, err
		}
	}
	s.subnetSize = int(extensions.Whole(cfg.Values["subnet_size"], defaultSubnetSize))
	if s.subnetSize < 20 || s.subnetSize > 29 {
		return s, extensions.Errorf(extensions.KindInvalid, "config.subnet_size: %d is not between 20 and 29", s.subnetSize)
	}
	return s, s.parseSubnets(cfg.Values["subnets"])
}

func checkRoot(root string) error {
	below, home := strings.CutPrefix(root, "~/")
	if root == "" || home && below != "" && !strings.HasPrefix(below, "..") && path.Clean(below) == below && !hasControl(below) {
		return nil
	}
	if !path.IsAbs(root) || path.Clean(root) != root || root == "/" || hasControl(root) {
		return extensions.Errorf(extensions.KindInvalid, "config.root: %q is not a clean path, absolute or below ~/", root)
	}
	return nil
}

func (s *settings) parseSubnets(v any) error {
	for _, text := range extensions.Strings(v, defaultSubnets) {
		p, err := netip.ParsePrefix(text)
		if err != nil || !p.Addr().Is4() || p != p.Masked() || p.Bits() < 8 || p.Bits() > s.subnetSize {
			return extensions.Errorf(extensions.KindInvalid, "config.subnets: %q is not an IPv4 range between /8 and /%d", text, s.subnetSize).
				WithRemedy("write it like 10.213.0.0/16, and choose a range that the host's networks do not use")
		}
		s.subnets = append(s.subnets, p)
	}
	return checkSubnets(s.subnets, s.subnetSize)
}

func (s settings) parseOptions(values map[string]any) (options, error) {
	o := options{workspacePath: defaultWorkspace}
	if err := extensions.CheckFields("options", optionFields, values); err != nil {
		return o, err
	}
	o.allow = extensions.Strings(values["allow"])
	if v, ok := values["publish"].(string); ok {
		o.publish = v
	}
	o.buildNetwork, _ = values["build_network"].(string)
	if v, ok := values["workspace_path"].(string); ok {
		o.workspacePath = v
	}
	if p := o.workspacePath; !path.IsAbs(p) || path.Clean(p) != p || slices.Contains([]string{"/", "/proc", "/sys", "/dev", "/etc"}, p) ||
		hasControl(p) || strings.Contains(p, ":") {
		return o, extensions.Errorf(extensions.KindInvalid, "options.workspace_path: %q cannot be the workspace", p).
			WithRemedy("use a clean absolute path such as /workspace or /src")
	}
	var err error
	o.stopGrace, err = durationOf("options.stop_grace", values["stop_grace"], s.stopGrace, 0)
	return o, err
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

// durationOf reads Go's format, optionally after whole days: "90s", "1d", "1d12h".
func durationOf(field string, v any, otherwise, least time.Duration) (time.Duration, error) {
	text, ok := v.(string)
	if !ok {
		return otherwise, nil
	}
	var days time.Duration
	rest := text
	if head, tail, found := strings.Cut(text, "d"); found {
		if n, err := strconv.ParseUint(head, 10, 16); err == nil {
			days, rest = time.Duration(n)*24*time.Hour, tail
		}
	}
	d, err := time.ParseDuration(rest)
	if rest == "" && text != "" {
		d, err = 0, nil
	}
	if err != nil || d+days < least {
		return 0, extensions.Errorf(extensions.KindInvalid, "%s: %q is not a duration of at least %s", field, text, least)
	}
	return d + days, nil
}
