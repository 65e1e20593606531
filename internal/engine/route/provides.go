package route

import (
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func missing(want, have []string) string {
	var out []string
	for _, w := range want {
		if !slices.Contains(have, w) {
			out = append(out, w)
		}
	}
	return strings.Join(out, ", ")
}

// hasAll is missing for those who only want to know whether.
func hasAll(want, have []string) bool {
	for _, w := range want {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}

func passRuntime(j *judge, c *Candidate) bool {
	return hasAll(j.Spec.Requires.Runtime, c.Provides.RuntimeKinds)
}

func tellRuntime(j *judge, c *Candidate) (string, string) {
	return "it does not provide the runtime " + missing(j.Spec.Requires.Runtime, c.Provides.RuntimeKinds),
		"if it really has it, list it under runtime_provides of " + c.Binding + "; else remove it from requires.runtime"
}

// lacking lists the kinds that c lacks. The name of a power is a kind, which nobody can claim for a place beside its
// declaration.
func (c *Candidate) lacking(kinds []string) (lacks []string, power bool) {
	for _, k := range kinds {
		p := extensions.Power(k)
		declared := slices.Contains(extensions.Powers, p)
		if declared && !slices.Contains(c.Powers, p) || !declared && !slices.Contains(c.Provides.RequirementKinds, k) {
			lacks, power = append(lacks, k), power || declared
		}
	}
	return lacks, power
}

func passRequirement(j *judge, c *Candidate) bool {
	lacks, _ := c.lacking(j.Spec.Requires.Capabilities)
	return len(lacks) == 0
}

func tellRequirement(j *judge, c *Candidate) (string, string) {
	lacks, power := c.lacking(j.Spec.Requires.Capabilities)
	reason := "it does not provide " + strings.Join(lacks, ", ")
	if power {
		return reason, "choose a place that can, or remove it from requires.capabilities"
	}
	return reason,
		"if it really has it, list it under runtime_provides of " + c.Binding + "; else remove it from requires.capabilities"
}

// anyOf reports whether one of want is among have; "*" is any, not known yet.
func anyOf(want, have []string) bool {
	return slices.Contains(have, "*") || slices.ContainsFunc(want, func(w string) bool { return slices.Contains(have, w) })
}

func passOS(j *judge, c *Candidate) bool { return anyOf(j.Spec.Requires.OS, c.Capabilities.OS) }

func tellOS(j *judge, c *Candidate) (string, string) {
	return "it runs " + strings.Join(c.Capabilities.OS, " or ") + ", and the profile requires " + strings.Join(j.Spec.Requires.OS, " or "),
		"choose a place of that operating system, or change requires.os"
}

func passArch(j *judge, c *Candidate) bool {
	return anyOf(j.Spec.Requires.Arch, c.Capabilities.Arch)
}

func tellArch(j *judge, c *Candidate) (string, string) {
	return "its architecture is " + strings.Join(c.Capabilities.Arch, " or ") + ", and the profile requires " +
			strings.Join(j.Spec.Requires.Arch, " or "),
		"choose a place of that architecture, or change requires.arch"
}

func passWorkload(j *judge, c *Candidate) bool {
	return slices.Contains(c.Provides.RequirementKinds, j.workload)
}

func tellWorkload(j *judge, _ *Candidate) (string, string) {
	return "it cannot run the profile's " + j.workload,
		"use a profile without " + j.workload + ", or a place that can run it"
}

// powerRule is asked only where the request needs the power.
func powerRule(id Rule, p extensions.Power, refuses string) RuleInfo {
	name := map[extensions.Power]string{
		extensions.PowerExec: "run commands", extensions.PowerFiles: "transfer files", extensions.PowerPause: "pause",
		extensions.PowerFork: "fork a sandbox", extensions.PowerSnapshot: "keep or restore snapshots",
	}[p]
	help := map[extensions.Power]string{
		extensions.PowerExec:     "choose a place that can, or a profile without readiness command and toolchain steps",
		extensions.PowerFiles:    "set workspace.mode: remote-canonical, or choose a place that can",
		extensions.PowerPause:    "remove desired_mode, or choose a place that can",
		extensions.PowerFork:     "use from_snapshot, or a place that can",
		extensions.PowerSnapshot: "remove from_snapshot, or choose the place that holds it",
	}[p]
	return RuleInfo{
		ID: id, Stage: StageViability, Refuses: refuses,
		passes: func(_ *judge, c *Candidate) bool { return slices.Contains(c.Powers, p) },
		tell: func(j *judge, _ *Candidate) (string, string) {
			return "it cannot " + name + ", and " + j.powers[p], help
		},
		asked: func(j *judge) bool { return j.powers[p] != "" },
	}
}

func passOption(j *judge, c *Candidate) bool {
	given := j.Options[c.Binding]
	if len(given) == 0 {
		return !slices.ContainsFunc(c.Options, func(f extensions.Field) bool { return f.Required })
	}
	return extensions.CheckFields("options", c.Options, given) == nil
}

func tellOption(j *judge, c *Candidate) (string, string) {
	err := extensions.CheckFields("options."+c.Binding, c.Options, j.Options[c.Binding])
	if err == nil {
		return "", ""
	}
	return extensions.Clean(err.Error(), 300), "correct options." + c.Binding + " in the profile"
}
