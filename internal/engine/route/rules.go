package route

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

// Rule is the stable ID of a rule; IDs are stored, so append only.
type Rule string

// The rules; Rules says what each refuses.
const (
	RulePin           Rule = "intent.pin"
	RuleHost          Rule = "intent.host"
	RuleOrigin        Rule = "intent.origin"
	RuleNamedOnly     Rule = "intent.named-only"
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
	RuleOS            Rule = "viability.requires.os"
	RuleArch          Rule = "viability.requires.arch"
	RuleRequirement   Rule = "viability.requires.capability"
	RulePowerExec     Rule = "viability.power.exec"
	RulePowerFiles    Rule = "viability.power.files"
	RulePowerPause    Rule = "viability.power.pause"
	RulePowerFork     Rule = "viability.power.fork"
	RulePowerSnapshot Rule = "viability.power.snapshot"
	RuleSecrets       Rule = "viability.secrets"
	RuleOption        Rule = "viability.option"
	RuleMaxCost       Rule = "viability.max-cost"

	RulePolicyUnreadable Rule = "permission.policy-unreadable"
	RulePolicyAbsent     Rule = "permission.policy-absent"
	RuleAllowedExtension Rule = "permission.extension"
	RuleAllowedHost      Rule = "permission.host"
	RuleAllowedRegion    Rule = "permission.region"
	RuleAllowedIsolation Rule = "permission.isolation"
	RuleAllowedBilling   Rule = "permission.billing"

	RuleAuthMode    Rule = "intent.auth-mode"
	RuleReach       Rule = "intent.reachability"
	RuleUnreachable Rule = "viability.unreachable"
	RuleBilling     Rule = "viability.billing"
	RuleCapacity    Rule = "viability.capacity"
	RuleCredit      Rule = "viability.credit"
	RulePrice       Rule = "viability.price"
	RulePorts       Rule = "viability.egress-ports"
	RuleEntrypoint  Rule = "viability.entrypoint"
	RuleIdleReap    Rule = "viability.idle-reap"
)

// RuleInfo explains one rule.
type RuleInfo struct {
	ID      Rule
	Stage   Stage
	Refuses string // Markdown, completes "refuses a place …"
	// passes judges one candidate. It runs for every one, so it avoids text and garbage.
	passes func(*judge, *Candidate) bool
	// tell returns a refusal's reason and remedy. It runs only after passes refused, and only when somebody reads the text.
	tell func(*judge, *Candidate) (reason, help string)
	// asked is false if no candidate can break the rule for this query; nil = always asked.
	asked func(*judge) bool
}

// Rules lists every rule in the order it is applied.
var Rules = []RuleInfo{
	{RuleNamedOnly, StageIntent, "that is a test double, unless the profile names it with `extension` or in `route.fallback`", passNamedOnly,
		tellNamedOnly, func(j *judge) bool { return j.doubles }},
	{RulePin, StageIntent, "other than the profile's `extension` and `route.fallback`", passPin, tellPin, (*judge).pinned},
	{RuleHost, StageIntent, "that is not on one of the request's `hosts`", passHost, tellHost, (*judge).insists},
	{RuleOrigin, StageIntent, "other than the one that holds the snapshot, or the sandbox to fork; a snapshot of a portable kind also " +
		"restores at places of the same handler and architecture", passing(tellOrigin), tellOrigin,
		(*judge).hasOrigin},
	{RuleAuthMode, StageIntent, "that is not this machine, where `route.constraints.auth_mode` pins `local` or `host-session`", passAuthMode,
		tellAuthMode,
		func(j *judge) bool { return j.Policy.AuthMode != "" }},
	{RuleReach, StageIntent, "on a host reached without `reachability.tunnel` or `reachability.identity`", passReach, tellReach,
		func(j *judge) bool { return j.Reach.asked() }},

	{RulePolicyUnreadable, StagePermission, "while a policy cannot be read", passNever, tellUnread, (*judge).unread},
	{RulePolicyAbsent, StagePermission, "of an account without a policy, in a catalog with policies", passNever, tellUngoverned,
		(*judge).ungoverned},
	{RuleAllowedExtension, StagePermission, "of an extension that a policy forbids, or does not list in `extensions.allowed`",
		passAllowedExtension, tellAllowedExtension,
		saying(func(p *AccountPolicy) bool { return !p.Extensions.empty() })},
	{RuleAllowedHost, StagePermission, "on a host that a policy forbids, or does not list in `hosts.allowed`", passAllowedHost,
		tellAllowedHost,
		saying(func(p *AccountPolicy) bool { return !p.Hosts.empty() })},
	{RuleAllowedRegion, StagePermission, "that may run in a region that a policy forbids, or does not list in `regions.allowed`",
		passAllowedRegion, tellAllowedRegion,
		saying(func(p *AccountPolicy) bool { return !p.Regions.empty() })},
	{RuleAllowedIsolation, StagePermission, "that could run this sandbox with less isolation than a policy's `require_isolation`",
		passAllowedIsolation, tellAllowedIsolation,
		saying(func(p *AccountPolicy) bool { return p.RequireIsolation != "" })},
	{RuleAllowedBilling, StagePermission, "that is metered, if a policy's `billing` does not allow the request's", passAllowedBilling,
		tellAllowedBilling,
		saying(func(p *AccountPolicy) bool { return p.Billing != nil })},

	{RuleCredentials, StageViability, "whose credentials are missing", available(RuleCredentials), tellUnavailable, (*judge).lacks},
	{RuleHostUnfit, StageViability, "whose machine, or account, cannot be used", available(RuleHostUnfit), tellUnavailable, (*judge).lacks},
	{RuleUnreachable, StageViability, "that did not answer a moment ago", available(RuleUnreachable), tellUnavailable, (*judge).lacks},

	{RuleIsolation, StageViability, "whose strongest isolation is below the floor (`isolation.level`, `route.constraints.require_isolation`)",
		passIsolation, tellIsolation,
		func(j *judge) bool { return j.floor != "" }},
	{RuleEgress, StageViability, "that cannot enforce the network policy; `network.default: allow` is fine anywhere", passEgress, tellEgress,
		func(j *judge) bool { return j.egress != extensions.EgressNone }},
	{RulePorts, StageViability, "whose allowlist cannot name the ports of `network.egress`", passPorts, tellPorts,
		func(j *judge) bool { return len(j.Spec.Network.Egress) > 0 }},
	{RuleTTL, StageViability, "whose maximum ttl is shorter", passTTL, tellTTL, nil},
	{RuleBilling, StageViability, "whose `billing` differs from the request's; a place of your own has none", passBilling, tellBilling, nil},
	{RuleExpiry, StageViability, "paid by platform credit that neither ends sandboxes itself nor finds them by ID", passExpiry, tellExpiry,
		func(j *judge) bool { return j.Billing != BillingBYOK }},
	{RuleCredit, StageViability, "paid by platform credit, or with a fee that grows with time, that does not end sandboxes itself or has no " +
		"known price; a create also counts the org's granted credit", passCredit, tellCredit, nil},
	{RuleRegion, StageViability, "outside `route.constraints.region`", passRegion, tellRegion,
		func(j *judge) bool { return j.Policy.Region != "" }},
	{RuleLimits, StageViability, "that does not enforce cpu, memory, disk or process limits, unless `resources.best_effort` is set",
		passLimits, tellLimits,
		func(j *judge) bool { return len(j.limits) > 0 }},
	{RuleResources, StageViability, "smaller than the requested resources", passResources, tellResources,
		(*judge).sized},
	{RuleGPU, StageViability, "without a requested GPU", passGPU, tellGPU, (*judge).wantsGPU},
	{RuleReadOnly, StageViability, "that cannot make a workspace read-only, for `access: ro`", passReadOnly, tellReadOnly,
		func(j *judge) bool { return j.Spec.Workspace.Access == extensions.AccessRO }},
	{RuleSecrets, StageViability, "that cannot deliver secrets by the profile's `secrets_as`, if that is `file` or there are secrets",
		passSecrets, tellSecrets,
		func(j *judge) bool { return j.Spec.SecretsAs != "" || len(j.Spec.SecretNames) > 0 }},
	{RuleEntrypoint, StageViability, "that cannot run the profile's `entrypoint`", passEntrypoint, tellEntrypoint,
		func(j *judge) bool { return !j.Spec.Entrypoint.Idle() }},
	{RuleIdleReap, StageViability, "where nobody ends an idle sandbox, for `ttl.idle_reap`", passIdleReap, tellIdleReap,
		func(j *judge) bool { return j.Spec.IdleReap > 0 }},
	{RuleWorkload, StageViability, "that does not provide the `image`, `compose` or `containers` of the profile", passWorkload, tellWorkload,
		func(j *judge) bool { return j.workload != "" }},
	{RuleRuntime, StageViability, "that lacks a runtime kind of `requires.runtime`", passRuntime, tellRuntime,
		func(j *judge) bool { return len(j.Spec.Requires.Runtime) > 0 }},
	{RuleRequirement, StageViability, "that lacks a requirement kind of `requires.capabilities`", passRequirement, tellRequirement,
		func(j *judge) bool { return len(j.Spec.Requires.Capabilities) > 0 }},
	{RuleOS, StageViability, "whose operating system is not in `requires.os`; a host's counts once it was probed", passOS, tellOS,
		func(j *judge) bool { return len(j.Spec.Requires.OS) > 0 }},
	{RuleArch, StageViability, "whose architecture is not in `requires.arch`; a host's counts once it was probed", passArch, tellArch,
		func(j *judge) bool { return len(j.Spec.Requires.Arch) > 0 }},
	powerRule(RulePowerExec, extensions.PowerExec,
		"that cannot run commands, if the readiness probe, the toolchain or `sandboxer run` needs it"),
	powerRule(RulePowerFiles, extensions.PowerFiles, "that cannot transfer files, if a mirrored workspace needs it"),
	powerRule(RulePowerPause, extensions.PowerPause, "that cannot pause, for `desired_mode = \"paused\"`"),
	powerRule(RulePowerFork, extensions.PowerFork, "that cannot fork, for `from_sandbox`"),
	powerRule(RulePowerSnapshot, extensions.PowerSnapshot, "that cannot restore, for `from_snapshot`"),
	{RuleCapacity, StageViability, "with more than 90 % of its known `capacity`, or of the limit it reports, in use; a plan does not count",
		passCapacity, tellCapacity, nil},
	{RuleOption, StageViability, "whose `options` are unknown or incomplete", passOption, tellOption, nil},
	{RulePrice, StageViability, "whose price cannot be computed for this request: a number is too large, or a fee is in another currency",
		passPrice, tellPrice,
		func(j *judge) bool { return j.unpriced }},
	{RuleMaxCost, StageViability, "above `route.constraints.max_cost_per_hour`, or metered at an unknown price", passMaxCost, tellMaxCost,
		func(j *judge) bool { return j.Policy.MaxCostPerHour != nil }},
}

// saying skips a rule that no policy sets.
func saying(says func(*AccountPolicy) bool) func(*judge) bool {
	return func(j *judge) bool { return j.Permission.any(says) }
}

// passing is for rules that rarely refuse: a candidate with a reason does not pass.
func passing(tell func(*judge, *Candidate) (string, string)) func(*judge, *Candidate) bool {
	return func(j *judge, c *Candidate) bool {
		reason, _ := tell(j, c)
		return reason == ""
	}
}

// need is a power that a request needs implicitly.
type need struct {
	power extensions.Power
	why   string
	when  func(*Query) bool
}

// needs lists everything that a request needs beyond the core.
var needs = []need{
	{extensions.PowerExec, "the readiness probe runs a command", func(q *Query) bool {
		return q.Spec.Readiness != nil && len(q.Spec.Readiness.Command) > 0
	}},
	{extensions.PowerExec, "the toolchain runs commands", func(q *Query) bool { return q.Spec.Toolchain.Runs() }},
	{extensions.PowerExec, "a command is to run there", func(q *Query) bool { return q.Runs }},
	{extensions.PowerFiles, "the mirrored workspace comes back", func(q *Query) bool {
		w := q.Spec.Workspace
		return w.Mode == extensions.WorkspaceMirror && w.Access != extensions.AccessNone
	}},
	{extensions.PowerPause, "desired_mode is paused", func(q *Query) bool { return q.DesiredMode == ModePaused }},
	{extensions.PowerFork, "from_sandbox is set", func(q *Query) bool { return q.Spec.FromSandbox != "" }},
	{extensions.PowerSnapshot, "from_snapshot is set", func(q *Query) bool { return q.Spec.FromSnapshot != nil }},
}
