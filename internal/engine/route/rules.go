package route

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

// Rule is the stable id of a rule; ids are stored, so append only.
type Rule string

// The rules; Rules says what each refuses.
const (
	RulePin           Rule = "intent.pin"
	RuleHost          Rule = "intent.host"
	RuleOrigin        Rule = "intent.origin"
	RuleNamedOnly     Rule = "intent.named-only"
	RuleHandler       Rule = "viability.handler"
	RuleNotYet        Rule = "viability.not-yet"
	RuleCredentials   Rule = "viability.credentials"
	RuleHostUnfit     Rule = "viability.host"
	RuleIsolation     Rule = "viability.isolation-floor"
	RuleEgress        Rule = "viability.egress"
	RuleTTL           Rule = "viability.ttl-max"
	RuleExpiry        Rule = "viability.expiry"
	RuleRegion        Rule = "viability.region"
	RuleLimits        Rule = "viability.limits"
	RuleResources     Rule = "viability.resources"
	RuleGPU           Rule = "viability.gpu"
	RuleReadOnly      Rule = "viability.read-only"
	RuleWorkload      Rule = "viability.workload"
	RuleRuntime       Rule = "viability.requires.runtime"
	RuleRequirement   Rule = "viability.requires.capability"
	RulePowerExec     Rule = "viability.power.exec"
	RulePowerFiles    Rule = "viability.power.files"
	RulePowerPause    Rule = "viability.power.pause"
	RulePowerFork     Rule = "viability.power.fork"
	RulePowerSnapshot Rule = "viability.power.snapshot"
	RuleOption        Rule = "viability.option"
	RuleMaxCost       Rule = "viability.max-cost"
)

// RuleInfo explains one rule.
type RuleInfo struct {
	ID      Rule
	Stage   Stage
	Refuses string // Markdown, completes "refuses a place …"
	check   check
	power   extensions.Power // of a power rule: skipped where it is not needed
}

// check judges one candidate; an empty reason passes it. Help says what would
// make it pass.
type check func(*judge, *Candidate) (reason, help string)

// Rules lists every rule in the order it is applied.
var Rules = []RuleInfo{
	{RuleNamedOnly, StageIntent, "that is a test double, unless the profile names it with `extension` or in `route.fallback`", checkNamedOnly, ""},
	{RulePin, StageIntent, "other than the one the profile pins with `extension` and its `route.fallback`", checkPin, ""},
	{RuleHost, StageIntent, "that is not on one of the `hosts` the request insists on", checkHost, ""},
	{RuleOrigin, StageIntent, "other than the one that holds the snapshot, or the sandbox to fork", checkOrigin, ""},

	{RuleHandler, StageViability, "whose handler this build does not have", unavailable(RuleHandler), ""},
	{RuleNotYet, StageViability, "that comes with a later release", unavailable(RuleNotYet), ""},
	{RuleCredentials, StageViability, "whose credentials are missing", unavailable(RuleCredentials), ""},
	{RuleHostUnfit, StageViability, "whose machine cannot be used", unavailable(RuleHostUnfit), ""},

	{RuleIsolation, StageViability, "whose strongest isolation is below the floor (`isolation.level`, `route.constraints.require_isolation`)", checkIsolation, ""},
	{RuleEgress, StageViability, "that cannot enforce the network policy; `network.default: allow` is fine anywhere", checkEgress, ""},
	{RuleTTL, StageViability, "where no sandbox may live as long as the ttl", checkTTL, ""},
	{RuleExpiry, StageViability, "on platform credit that neither ends sandboxes by itself nor finds them again by id", checkExpiry, ""},
	{RuleRegion, StageViability, "outside `route.constraints.region`", checkRegion, ""},
	{RuleLimits, StageViability, "that does not hold cpu, memory, disk or process limits, unless `resources.best_effort` is set", checkLimits, ""},
	{RuleResources, StageViability, "smaller than the resources asked for", checkResources, ""},
	{RuleGPU, StageViability, "without a GPU where one is asked for", checkGPU, ""},
	{RuleReadOnly, StageViability, "that cannot keep a workspace of `access: ro` from being written", checkReadOnly, ""},
	{RuleWorkload, StageViability, "that does not list `image`, `compose` or `containers` among its requirement kinds where the profile is made of one", checkWorkload, ""},
	{RuleRuntime, StageViability, "that lacks a runtime kind of `requires.runtime`", checkRuntime, ""},
	{RuleRequirement, StageViability, "that lacks a requirement kind of `requires.capabilities`", checkRequirement, ""},
	{RulePowerExec, StageViability, "that cannot run commands, where the readiness probe or the toolchain needs it", checkPower(extensions.PowerExec), extensions.PowerExec},
	{RulePowerFiles, StageViability, "that cannot transfer files, where a mirrored workspace needs it", checkPower(extensions.PowerFiles), extensions.PowerFiles},
	{RulePowerPause, StageViability, "that cannot pause, for `desired_mode = \"paused\"`", checkPower(extensions.PowerPause), extensions.PowerPause},
	{RulePowerFork, StageViability, "that cannot fork, for `from_sandbox`", checkPower(extensions.PowerFork), extensions.PowerFork},
	{RulePowerSnapshot, StageViability, "that cannot restore, for `from_snapshot`", checkPower(extensions.PowerSnapshot), extensions.PowerSnapshot},
	{RuleOption, StageViability, "that does not know, or misses, one of the `options` given for it", checkOption, ""},
	{RuleMaxCost, StageViability, "above `route.constraints.max_cost_per_hour`, or metered at an unknown price", checkMaxCost, ""},
}

// need is a power that a request asks for without naming it.
type need struct {
	power extensions.Power
	why   string
	when  func(*Query) bool
}

// needs is the one list of what a request needs beyond the core.
var needs = []need{
	{extensions.PowerExec, "the readiness probe runs a command", func(q *Query) bool {
		return q.Spec.Readiness != nil && len(q.Spec.Readiness.Command) > 0
	}},
	{extensions.PowerExec, "the toolchain runs commands", func(q *Query) bool {
		t := q.Spec.Toolchain
		return len(t.Kits)+len(t.Install)+len(t.PostAcquire)+len(t.PreRelease) > 0
	}},
	{extensions.PowerFiles, "the mirrored workspace is brought back", func(q *Query) bool {
		w := q.Spec.Workspace
		return w.Mode == extensions.WorkspaceMirror && w.Access != extensions.AccessNone
	}},
	{extensions.PowerPause, "desired_mode is paused", func(q *Query) bool { return q.DesiredMode == ModePaused }},
	{extensions.PowerFork, "from_sandbox is set", func(q *Query) bool { return q.Spec.FromSandbox != "" }},
	{extensions.PowerSnapshot, "from_snapshot is set", func(q *Query) bool { return q.Spec.FromSnapshot != nil }},
}

// Needs returns the powers q asks for, in the order of extensions.Powers.
func Needs(q Query) []extensions.Power {
	var out []extensions.Power
	for _, p := range extensions.Powers {
		for _, n := range needs {
			if n.power == p && n.when(&q) {
				out = append(out, p)
				break
			}
		}
	}
	return out
}
