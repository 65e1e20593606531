package compose

import (
	"cmp"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// DefaultPids limits each container's processes and threads if neither the profile nor the stack sets a lower
// limit.
const DefaultPids = 512

// The least that a container can be given.
const (
	minMemory = 6 << 20 // bytes; the engine refuses less
	minMilli  = 10      // thousandths of a CPU, likewise
	minPids   = 4
)

// mostClaimed is more than any sandbox has of anything, and small enough that the sum of all containers'
// claims does not overflow.
const mostClaimed = 1 << 48

// limit is what one container of a service may use; 0 is no limit.
type limit struct {
	memory, milli, pids int64
	gpus                int64
}

// limits divides the sandbox's resources among its containers. The containers' limits never add up to more
// than the sandbox's: each service gets what it claims in the compose file, and the others equal shares of
// the rest. Best effort instead gives each container all of it, so that a stack as a whole can use more.
func (r *renderer) limits() (map[string]limit, error) {
	res := r.o.Resources
	if res.DiskMB != nil && !res.BestEffort {
		return nil, extensions.Errorf(extensions.KindUnsupported, "Docker cannot limit a stack's disk here").
			At("resources.disk_mb").WithRemedy("drop disk_mb, or set resources.best_effort")
	}
	var memory, milli, pids int64
	if res.MemoryMB != nil {
		memory = *res.MemoryMB << 20
	}
	if res.CPU != nil {
		milli = int64(*res.CPU)
	}
	if res.Pids != nil {
		pids = *res.Pids
	}
	out := map[string]limit{}
	for name := range r.p.Compose.Services {
		out[name] = limit{}
	}
	for _, part := range []struct {
		field, unit string
		total, min  int64
		claim       func(types.ServiceConfig) int64
		set         func(*limit, int64)
	}{
		{"resources.memory_mb", "bytes of memory", memory, minMemory, claimedMemory, func(l *limit, v int64) { l.memory = v }},
		{"resources.cpu", "thousandths of a CPU", milli, minMilli, claimedMilli, func(l *limit, v int64) { l.milli = v }},
		{"resources.pids", "processes", pids, minPids, claimedPids, func(l *limit, v int64) { l.pids = v }},
	} {
		shares, err := r.share(part.total, part.min, part.claim, part.field, part.unit)
		if err != nil {
			return nil, err
		}
		for name, v := range shares {
			l := out[name]
			part.set(&l, v)
			out[name] = l
		}
	}
	return out, r.accelerators(out)
}

// share divides total; see limits.
func (r *renderer) share(total, least int64, claim func(types.ServiceConfig) int64, field, unit string) (map[string]int64, error) {
	out := map[string]int64{}
	rest, open := total, int64(0)
	for name, s := range r.p.Compose.Services {
		scale := int64(s.GetScale())
		out[name] = claim(s)
		switch {
		case out[name] < 0:
			return nil, extensions.Errorf(extensions.KindInvalid, "the service %q claims %d %s", name, out[name], unit).
				At("compose").WithRemedy("set a positive limit, or none")
		case total == 0:
		case r.o.Resources.BestEffort:
			if out[name] == 0 || out[name] > total {
				out[name] = total
			}
		case out[name] > 0:
			rest -= min(out[name], mostClaimed) * scale
		default:
			open += scale
		}
	}
	if total == 0 || r.o.Resources.BestEffort {
		return out, nil
	}
	if rest < 0 || open > 0 && rest/open < least {
		return nil, extensions.Errorf(extensions.KindInvalid,
			"%d %s are not enough for the stack: its services claim %d, and %d more containers need at least %d each",
			total, unit, total-rest, open, least).At(field).
			WithRemedy("raise %s, lower the limits in the compose file, or set resources.best_effort", field)
	}
	for name := range out {
		if out[name] == 0 && open > 0 {
			out[name] = rest / open
		}
	}
	return out, nil
}

// accelerators gives the accelerators to exec's default service.
func (r *renderer) accelerators(out map[string]limit) error {
	gpu := r.o.Resources.GPU
	if gpu == nil || gpu.Count == 0 {
		return nil
	}
	switch {
	case !r.o.GPU && !r.o.Resources.BestEffort:
		return extensions.Errorf(extensions.KindUnsupported, "the host provides no accelerators to containers, or the profile may not use them").
			At("resources.gpu").WithRemedy("choose a host with the NVIDIA container toolkit, or set resources.best_effort")
	case !r.o.GPU:
		return nil
	case gpu.Model != "" && !r.o.Resources.BestEffort:
		return extensions.Errorf(extensions.KindUnsupported, "Docker cannot choose an accelerator by its model %q", gpu.Model).
			At("resources.gpu.model").WithRemedy("drop the model, or set resources.best_effort")
	case r.out.Default == "":
		return extensions.Errorf(extensions.KindInvalid, "the stack does not set which service gets the accelerators").
			At("compose.service").WithRemedy("set the service in compose.service")
	}
	l := out[r.out.Default]
	l.gpus = gpu.Count
	out[r.out.Default] = l
	return nil
}

func claimedMemory(s types.ServiceConfig) int64 {
	return cmp.Or(int64(s.MemLimit), int64(deployed(s).MemoryBytes))
}

func claimedMilli(s types.ServiceConfig) int64 {
	milli := cmp.Or(float64(s.CPUS), float64(deployed(s).NanoCPUs)) * 1000
	switch {
	case milli > mostClaimed:
		return mostClaimed
	case milli < 0:
		return -1
	}
	return int64(milli + 0.5) // rounded: a float32 of 0.3 is a little more
}

func claimedPids(s types.ServiceConfig) int64 {
	return max(cmp.Or(s.PidsLimit, deployed(s).Pids), 0) // -1 claims all, which is none
}

func deployed(s types.ServiceConfig) types.Resource {
	if s.Deploy == nil || s.Deploy.Resources.Limits == nil {
		return types.Resource{}
	}
	return *s.Deploy.Resources.Limits
}

// limitService writes a container's limits in the form that every Compose knows, replacing all others.
func (r *renderer) limitService(s *types.ServiceConfig, l limit) {
	if l.memory > 0 {
		s.MemLimit = types.UnitBytes(l.memory)
		s.MemReservation = min(s.MemReservation, s.MemLimit)
		if r.o.Resources.MemoryMB != nil || s.MemSwapLimit != 0 && s.MemSwapLimit < s.MemLimit {
			s.MemSwapLimit = s.MemLimit // no swap beyond the limit
		}
	}
	if l.milli > 0 {
		s.CPUS = float32(l.milli) / 1000
		s.CPUCount, s.CPUPercent, s.CPUPeriod, s.CPUQuota = 0, 0, 0, 0
	}
	s.PidsLimit = cmp.Or(l.pids, DefaultPids)
	if r.o.Resources.Pids == nil {
		s.PidsLimit = min(s.PidsLimit, DefaultPids)
	}
	var devices []types.DeviceRequest
	if s.Deploy != nil && s.Deploy.Resources.Reservations != nil {
		devices = append(devices, s.Deploy.Resources.Reservations.Devices...)
	}
	if l.gpus > 0 {
		devices = append(devices, types.DeviceRequest{Driver: "nvidia", Count: types.DeviceCount(l.gpus), Capabilities: []string{"gpu"}})
	}
	scale := s.GetScale()
	s.Deploy, s.Scale = nil, nil
	if scale != 1 {
		s.Scale = &scale
	}
	if len(devices) > 0 {
		s.Deploy = &types.DeployConfig{Resources: types.Resources{Reservations: &types.Resource{Devices: devices}}}
	}
}
