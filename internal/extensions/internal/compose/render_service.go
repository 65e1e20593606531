package compose

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// services adapts each service to a host that is not the stack's own.
func (r *renderer) services() error {
	shares, err := r.limits()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.p.Compose.Services)) {
		src := r.p.Compose.Services[name]
		if len(src.PreStart) > 0 || src.Provider != nil {
			return extensions.Errorf(extensions.KindInvalid, "service %q starts containers that are not services (pre_start, provider)", name).
				At("compose").WithRemedy("make it a service that others wait for with service_completed_successfully")
		}
		info := r.info(name, src)
		s, err := r.service(name, src, shares[name], &info)
		if err != nil {
			return err
		}
		r.model.Services[name] = s
		r.out.Services = append(r.out.Services, info)
	}
	return nil
}

func (r *renderer) service(name string, s types.ServiceConfig, l limit, info *ServiceInfo) (types.ServiceConfig, error) {
	s.Name = name
	s.Profiles, s.ContainerName, s.Extends, s.Develop, s.Extensions = nil, "", nil, nil, nil
	s.EnvFiles, s.LabelFiles, s.Attach = nil, nil, nil
	s.Build, s.Image = nil, info.Image
	s.PullPolicy, s.PullRefreshAfter = types.PullPolicyNever, "" // see Rendered.Pulls and Rendered.Builds
	s.Labels = r.labels(s.Labels)
	s.SecurityOpt = noNewPrivileges(s.SecurityOpt)
	listed := r.listedSecrets(s)
	s.Environment = r.environment(s.Environment, r.targets[name])
	s.PostStart = r.hooks(s.PostStart)
	s.PreStop = r.hooks(s.PreStop)
	s.Ports = r.ports(s.Ports, info)
	s.Logging = boundedLogs(s.Logging)
	s.Restart = "" // the engine would start it after a reboot, before anything watches its deadline
	r.limitService(&s, l)
	if err := r.wallService(name, &s); err != nil {
		return s, err
	}
	if err := r.mounts(name, &s, info); err != nil {
		return s, err
	}
	return s, r.secretFiles(name, &s, listed, r.targets[name])
}

// wallService removes from a service what could reach past a denying network.
func (r *renderer) wallService(name string, s *types.ServiceConfig) error {
	joined := maps.Clone(s.Networks)
	for net, c := range joined {
		if c == nil {
			continue
		}
		if c.Ipv4Address != "" || c.Ipv6Address != "" {
			return extensions.Errorf(extensions.KindInvalid, "service %q has a fixed address in network %q, but the host chooses the subnet", name,
				net).
				At("compose").WithRemedy("use the service's name instead of its address")
		}
		own := *c
		own.Extensions = nil
		if r.o.Network != NetworkAllow {
			own.DriverOpts = nil
		}
		joined[net] = &own
	}
	if len(joined) == 0 && s.NetworkMode == "" {
		joined = map[string]*types.ServiceNetworkConfig{"default": nil}
	}
	s.Networks = joined
	if r.o.Network == NetworkAllow {
		return nil
	}
	s.CapDrop = slices.Clone(s.CapDrop)
	for _, c := range []string{"NET_RAW", "NET_ADMIN"} {
		if !slices.ContainsFunc(s.CapDrop, func(have string) bool {
			return strings.TrimPrefix(strings.ToUpper(have), "CAP_") == c || strings.EqualFold(have, "ALL")
		}) {
			s.CapDrop = append(s.CapDrop, c)
		}
	}
	// Nothing answers there, so the engine's resolver knows only the stack's own names. A service that shares
	// another's network has its resolver.
	s.DNS, s.DNSSearch = nil, nil
	if s.NetworkMode == "" {
		s.DNS = types.StringList{"127.0.0.1"}
	}
	if r.alone() {
		unplug(name, s)
	}
	return nil
}

// boundedLogs keeps a container's output from filling the host's disk; the engine's own default keeps all of
// it.
func boundedLogs(own *types.LoggingConfig) *types.LoggingConfig {
	out := types.LoggingConfig{Driver: "json-file", Options: types.Options{}}
	if own != nil {
		out.Driver = cmp.Or(own.Driver, out.Driver)
		maps.Copy(out.Options, own.Options)
	}
	if out.Driver == "json-file" || out.Driver == "local" {
		out.Options["max-size"] = cmp.Or(out.Options["max-size"], "16m")
		out.Options["max-file"] = cmp.Or(out.Options["max-file"], "2")
	}
	return &out
}

func noNewPrivileges(opts []string) []string {
	out := []string{"no-new-privileges:true"}
	for _, o := range opts {
		if !strings.HasPrefix(o, "no-new-privileges") {
			out = append(out, o)
		}
	}
	return out
}

// labels returns the stack's own labels overridden by ours. The stack cannot set Compose's.
func (r *renderer) labels(own types.Labels) types.Labels {
	out := types.Labels{}
	for k, v := range own {
		if !strings.HasPrefix(k, "sandboxer.") && !strings.HasPrefix(k, "com.docker.compose.") {
			out[k] = v
		}
	}
	maps.Copy(out, r.o.Labels)
	return out
}

// info returns what is known of a service before it is changed.
func (r *renderer) info(name string, s types.ServiceConfig) ServiceInfo {
	i := ServiceInfo{
		Name: name, Scale: s.GetScale(), User: s.User, Image: ociimage.ByName(s.Image),
		Health:    s.HealthCheck != nil && !s.HealthCheck.Disable && !slices.Equal(s.HealthCheck.Test, []string{"NONE"}),
		DependsOn: slices.Sorted(maps.Keys(s.DependsOn)),
	}
	if tag := r.built[name]; tag != "" {
		i.Image = tag
	}
	for _, other := range r.p.Compose.Services {
		switch other.DependsOn[name].Condition {
		case types.ServiceConditionCompletedSuccessfully:
			i.OneShot = true
		case types.ServiceConditionHealthy:
			i.LongRunning = true
		}
	}
	returns := s.Restart == types.RestartPolicyAlways || s.Restart == types.RestartPolicyUnlessStopped
	i.LongRunning = !i.OneShot && (i.LongRunning || i.Health || returns || len(s.Ports) > 0 || name == r.out.Default)
	i.Job = !i.OneShot && !i.LongRunning && (s.Restart == types.RestartPolicyNo || strings.HasPrefix(s.Restart, types.RestartPolicyOnFailure))
	return i
}
