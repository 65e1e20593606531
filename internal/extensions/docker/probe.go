package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/system"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Probe implements extensions.Prober.
func (b *Backend) Probe(ctx context.Context) (extensions.Facts, []extensions.Observation, error) {
	f, err := b.probe(ctx)
	return f, nil, failed("probe", "", err)
}

func (b *Backend) probe(ctx context.Context) (extensions.Facts, error) {
	info, err := b.engine.about(ctx)
	if err != nil {
		return extensions.Facts{}, err
	}
	f := extensions.Facts{Machine: &extensions.HostFacts{OS: info.OSType, Arch: goArch(info.Architecture), CPUs: int64(info.NCPU),
		MemoryMB: info.MemTotal >> 20, Docker: info.ServerVersion}}
	levels := levelsOf(info)
	limits := limitsOf(info)
	f.Narrowing = extensions.Narrowing{OS: []string{f.Machine.OS}, Arch: []string{f.Machine.Arch}, IsolationLevels: levels, Limits: limits}
	if !hasCgroups(info) {
		none := extensions.IdleReapNone
		f.Narrowing.IdleReap = &none
		f.Powers = slices.DeleteFunc(extension{}.Describe().Powers, func(p extensions.Power) bool { return slices.Contains(freezing, p) })
		f.Notes = append(f.Notes,
			"pause: without cgroups the engine cannot freeze containers, so there are no pauses or forks, and snapshots are live")
	}
	f.Machine.Isolation, f.Machine.Expiry, f.Machine.Egress = levels, extensions.ExpiryHost, extensions.EgressDenyOnly
	if info.OSType != "linux" {
		f.Unfit = []string{fmt.Sprintf("docker: the engine runs %s containers; switch it to Linux containers", extensions.Clean(info.OSType, 40))}
	}
	if len(limits) < 3 {
		f.Notes = append(f.Notes, "resources: the engine cannot limit all of CPU, memory and processes; it needs cgroups, and rootless Docker "+
			"needs cgroup v2 with systemd")
	}
	if len(levels) == 1 {
		f.Notes = append(f.Notes, "isolation: only runc is installed; runsc (gVisor) adds userspace-kernel, Kata Containers microvm")
	}
	f.Machine.Notes = slices.Concat(f.Unfit, f.Notes)
	f.Machine.Unfit = f.Unfit
	return f, nil
}

// freezing are the powers that need cgroups: what is copied must not run meanwhile.
var freezing = []extensions.Power{extensions.PowerPause, extensions.PowerFork, extensions.PowerSnapshot, extensions.PowerReadSnapshot}

// hasCgroups reports whether an engine limits, freezes and measures containers. One without root has none with cgroup v1.
func hasCgroups(info system.Info) bool { return info.CgroupDriver != "none" }

// canFreeze refuses what needs frozen containers where the engine freezes none.
func (e *engine) canFreeze(ctx context.Context) error {
	info, err := e.about(ctx)
	if err != nil || hasCgroups(info) {
		return err
	}
	return extensions.Errorf(extensions.KindUnsupported, "the engine has no cgroups, so it cannot freeze containers").
		WithRemedy("take a live snapshot (live = true), or use an engine with cgroups; rootless Docker needs cgroup v2 with systemd")
}

// goArch returns Go's name of a machine's architecture.
func goArch(name string) string {
	switch name {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	case "armv7l", "armv6l":
		return "arm"
	}
	return name
}

// runtimes lists the engine's runtimes that give a level, sorted.
func runtimes(info system.Info, level extensions.Isolation) []string {
	var names []string
	for name := range info.Runtimes {
		if levelOf(name) == level {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// levelOf returns the level that a runtime gives, by its name.
func levelOf(runtime string) extensions.Isolation {
	switch {
	case strings.Contains(runtime, "runsc") || strings.Contains(runtime, "gvisor"):
		return extensions.IsolationUserspace
	case strings.Contains(runtime, "kata"):
		return extensions.IsolationMicroVM
	}
	return extensions.IsolationContainer
}

func levelsOf(info system.Info) []extensions.Isolation {
	levels := []extensions.Isolation{extensions.IsolationContainer}
	for _, l := range []extensions.Isolation{extensions.IsolationUserspace, extensions.IsolationMicroVM} {
		if len(runtimes(info, l)) > 0 {
			levels = append(levels, l)
		}
	}
	return levels
}

// runtimeFor returns the runtime of the weakest level that meets the floor, "" = the engine's default.
func runtimeFor(info system.Info, floor extensions.Isolation) (string, error) {
	if floor == "" || extensions.IsolationContainer.Meets(floor) {
		return "", nil
	}
	for _, l := range levelsOf(info)[1:] {
		if l.Meets(floor) {
			return runtimes(info, l)[0], nil
		}
	}
	return "", extensions.Errorf(extensions.KindUnsupported, "the engine has no runtime with isolation %q", floor).
		WithRemedy("install runsc (gVisor) or Kata Containers there, or lower isolation.level")
}

func limitsOf(info system.Info) []extensions.Limit {
	limits := []extensions.Limit{}
	for _, l := range []struct {
		limit extensions.Limit
		holds bool
	}{{extensions.LimitCPU, info.CPUCfsQuota}, {extensions.LimitMemory, info.MemoryLimit}, {extensions.LimitPids, info.PidsLimit}} {
		if l.holds {
			limits = append(limits, l.limit)
		}
	}
	return limits
}

// lacksLimits refuses a limit that the engine would accept and ignore.
func lacksLimits(info system.Info, r extensions.Resources) error {
	if r.BestEffort {
		return nil
	}
	for _, l := range r.Limits() {
		if !slices.Contains(limitsOf(info), l) {
			return extensions.Errorf(extensions.KindUnsupported, "the engine cannot limit %s", l).At("resources." + string(l)).
				WithRemedy("drop it, set resources.best_effort, or use an engine with cgroups for it")
		}
	}
	return nil
}
