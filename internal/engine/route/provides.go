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

func checkRuntime(j *judge, c *Candidate) (string, string) {
	lacks := missing(j.Spec.Requires.Runtime, c.Provides.RuntimeKinds)
	if lacks == "" {
		return "", ""
	}
	return "it does not provide the runtime " + lacks,
		"if it really has it, list it under runtime_provides of " + c.Binding + "; else remove it from requires.runtime"
}

func checkRequirement(j *judge, c *Candidate) (string, string) {
	lacks := missing(j.Spec.Requires.Capabilities, c.Provides.RequirementKinds)
	if lacks == "" {
		return "", ""
	}
	return "it does not provide " + lacks,
		"if it really has it, list it under runtime_provides of " + c.Binding + "; else remove it from requires.capabilities"
}

func checkWorkload(j *judge, c *Candidate) (string, string) {
	if j.workload == "" || slices.Contains(c.Provides.RequirementKinds, j.workload) {
		return "", ""
	}
	return "it cannot run what the profile describes under " + j.workload,
		"use a profile without " + j.workload + ", or a place that can run it"
}

func checkPower(p extensions.Power) check {
	name := map[extensions.Power]string{
		extensions.PowerExec: "run commands", extensions.PowerFiles: "transfer files", extensions.PowerPause: "pause",
		extensions.PowerFork: "fork a sandbox", extensions.PowerSnapshot: "keep or restore snapshots",
	}[p]
	help := map[extensions.Power]string{
		extensions.PowerExec:     "remove the readiness command and the toolchain steps, or choose a place that can",
		extensions.PowerFiles:    "set workspace.mode: remote-canonical, or choose a place that can",
		extensions.PowerPause:    "remove desired_mode, or choose a place that can",
		extensions.PowerFork:     "use from_snapshot, or a place that can",
		extensions.PowerSnapshot: "remove from_snapshot, or choose the place that holds it",
	}[p]
	return func(j *judge, c *Candidate) (string, string) {
		if slices.Contains(c.Powers, p) {
			return "", ""
		}
		return "it cannot " + name + ", and " + j.powers[p], help
	}
}

func checkOption(j *judge, c *Candidate) (string, string) {
	if len(c.Options) == 0 && len(j.Options[c.Binding]) == 0 {
		return "", ""
	}
	err := extensions.CheckFields("options."+c.Binding, c.Options, j.Options[c.Binding])
	if err == nil {
		return "", ""
	}
	return extensions.Clean(err.Error(), 300), "correct options." + c.Binding + " in the profile"
}
