package compose

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Options of Docker's bridge driver.
const (
	// No address of the host on the bridge. The newer gateway_mode_ipv4=isolated of engines since 28 does no
	// more.
	optInhibit    = "com.docker.network.bridge.inhibit_ipv4"
	optBridge     = "com.docker.network.bridge.name"
	maxBridgeName = 15 // bytes, of a Linux interface
)

// networks creates every network that a service joins; others would not be created.
func (r *renderer) networks() error {
	r.model.Networks = types.Networks{}
	if r.alone() {
		return nil
	}
	r.out.Networks = r.p.NetworkNames()
	for i, name := range r.out.Networks {
		src, ok := r.p.Compose.Networks[name]
		if !ok && name != "default" {
			return extensions.Errorf(extensions.KindInvalid, "a service joins the network %q, which the stack does not declare", name).At("compose")
		}
		if bool(src.External) || (src.Driver != "" && src.Driver != "bridge") {
			return extensions.Errorf(extensions.KindInvalid, "the network %q is not the stack's own, or not of the bridge driver", name).
				At("compose").WithRemedy("drop external and driver of the network")
		}
		n := types.NetworkConfig{
			Driver: "bridge", Labels: r.labels(src.Labels), Internal: src.Internal, EnableIPv6: src.EnableIPv6,
			Ipam: types.IPAMConfig{Config: []*types.IPAMPool{{Subnet: token(VarNet + strconv.Itoa(i))}}},
		}
		if r.o.Network == NetworkAllow {
			n.DriverOpts = src.DriverOpts
		} else if err := r.wallNetwork(name, i, &n); err != nil {
			return err
		}
		r.model.Networks[name] = n
	}
	return nil
}

// alone reports whether nobody else can be on the stack's network and nothing leaves it. Making one takes as long as all
// else of a create, and removing it of a destroy. A stack that says anything about its networks has them, and so has one
// that names its domain: only an engine writes the whole name before its first part.
func (r *renderer) alone() bool {
	declared := r.p.Compose.Networks["default"]
	declared.Name = ""
	if r.o.Network != NetworkDeny || len(r.p.Compose.Services) != 1 || !reflect.DeepEqual(declared, types.NetworkConfig{}) {
		return false
	}
	for _, s := range r.p.Compose.Services {
		c, ok := s.Networks["default"]
		own := len(s.Networks) > 1 || len(s.Networks) == 1 && !ok || c != nil && !onlyAliases(*c) || s.NetworkMode != "" || s.MacAddress != "" ||
			s.DomainName != "" || strings.Contains(s.Hostname, ".")
		for key := range s.Sysctls {
			own = own || strings.HasPrefix(key, "net.")
		}
		if own || s.GetScale() > 1 {
			return false
		}
	}
	return true
}

func onlyAliases(c types.ServiceNetworkConfig) bool {
	c.Aliases = nil
	return reflect.DeepEqual(c, types.ServiceNetworkConfig{})
}

// unplug gives a service that is alone no network, and its names an address all the same.
func unplug(name string, s *types.ServiceConfig) {
	if s.Hostname == "" {
		s.Hostname = AgentService
		if plainHost.MatchString(name) {
			s.Hostname = name
		}
	}
	names := []string{name, s.Hostname}
	if c := s.Networks["default"]; c != nil {
		names = append(names, c.Aliases...)
	}
	s.ExtraHosts = maps.Clone(s.ExtraHosts)
	if s.ExtraHosts == nil {
		s.ExtraHosts = types.HostsList{}
	}
	for _, n := range names {
		if _, set := s.ExtraHosts[n]; !set && n != "" && !strings.ContainsAny(n, ":=") { // others cannot be written, nor looked up
			s.ExtraHosts[n] = []string{"127.0.0.1"}
		}
	}
	s.Networks, s.NetworkMode = nil, "none"
}

// plainHost is what every engine and kernel takes as a host's name, and nobody as an address.
var plainHost = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

func (r *renderer) wallNetwork(name string, i int, n *types.NetworkConfig) error {
	off := false
	n.EnableIPv6 = &off
	n.Internal = n.Internal || r.o.Network != NetworkGuarded || !r.o.Egress
	n.DriverOpts = types.Options{}
	bridge := ""
	if i < len(r.o.Bridges) {
		bridge = r.o.Bridges[i]
	}
	switch {
	case r.o.Network == NetworkDeny:
		bridge = ""
	case bridge == "" && r.o.Network == NetworkGuarded, len(bridge) > maxBridgeName:
		return extensions.Errorf(extensions.KindInternal, "%q is not a valid bridge name for network %q", bridge, name)
	}
	if bridge != "" { // the firewall guards it, and the host reaches in
		n.DriverOpts[optBridge] = bridge
	} else {
		n.DriverOpts[optInhibit] = "true"
	}
	return nil
}

// volumes creates every named volume that a service mounts.
func (r *renderer) volumes() error {
	r.model.Volumes = types.Volumes{}
	for _, s := range r.model.Services {
		for _, m := range s.Volumes {
			if m.Type != types.VolumeTypeVolume || m.Source == "" {
				continue
			}
			src := r.p.Compose.Volumes[m.Source]
			if bool(src.External) {
				return extensions.Errorf(extensions.KindInvalid, "the volume %q is not the stack's own", m.Source).
					At("compose").WithRemedy("drop external of the volume")
			}
			r.model.Volumes[m.Source] = types.VolumeConfig{
				Driver: cmp.Or(src.Driver, "local"), DriverOpts: src.DriverOpts, Labels: r.labels(src.Labels),
			}
		}
	}
	r.out.Volumes = sortedKeys(r.model.Volumes)
	return nil
}

// files binds configs and secrets to their place on the host. A value from the environment comes from the
// sandbox's, never the host's.
func (r *renderer) files() error {
	r.model.Configs, r.model.Secrets = types.Configs{}, types.Secrets{}
	for name, src := range r.p.Compose.Configs {
		f, err := r.file("config", name, types.FileObjectConfig(src))
		if err != nil {
			return err
		}
		r.model.Configs[name] = types.ConfigObjConfig(f)
	}
	for name, src := range r.p.Compose.Secrets {
		f, err := r.file("secret", name, types.FileObjectConfig(src))
		if err != nil {
			return err
		}
		r.model.Secrets[name] = types.SecretConfig(f)
	}
	return nil
}

func (r *renderer) file(what, name string, src types.FileObjectConfig) (types.FileObjectConfig, error) {
	out := types.FileObjectConfig{}
	wrong := extensions.Errorf(extensions.KindInvalid,
		"the %s %q has no content: it refers to neither a file of the source nor a variable of the sandbox", what, name).
		At("compose").WithRemedy("set it to a file beside the stack, or to the name of a variable or secret of the sandbox")
	_, isSecret := r.secrets[src.Environment]
	switch {
	case src.File != "":
		rel, inside, err := r.source(src.File, false)
		if err != nil {
			return out, err
		}
		if !inside {
			return out, wrong
		}
		out.File = r.place(rel)
	case isSecret && r.o.SecretFiles:
		out.File = r.secretFile(src.Environment)
	case isSecret:
		out.Environment = r.secrets[src.Environment]
	case what == "config" && src.Environment != "":
		if value := r.lookup(src.Environment); value != nil {
			out.Content = *value
		} else if value, ok := r.p.Compose.Environment[src.Environment]; ok {
			out.Content = value
		} else {
			return out, wrong
		}
	case what == "config" && src.Content != "":
		out.Content = src.Content
	default:
		return out, wrong
	}
	return out, nil
}
