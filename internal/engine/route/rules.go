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
)

// RuleInfo explains one rule.
type RuleInfo struct {
	ID      Rule
	Stage   Stage
	Refuses string // Markdown, completes "refuses a place …"
	// passes judges one candidate. It is asked for every one, so it makes no
	// text and no garbage where that can be helped.
	passes func(*judge, *Candidate) bool
	// tell puts a refusal into words: why, and what would make it pass. It is
	// asked only where passes said no, and when somebody reads.
	tell func(*judge, *Candidate) (reason, help string)
	// asked is false where no candidate can break the rule for this query;
	// nil = always asked.
	asked func(*judge) bool
}

// Rules lists every rule in the order it is applied.
var Rules = []RuleInfo{
	{RuleNamedOnly, StageIntent, "that is a test double, unless the profile names it with `extension` or in `route.fallback`", passNamedOnly, tellNamedOnly, func(j *judge) bool { return j.doubles }},
	{RulePin, StageIntent, "other than the one the profile pins with `extension` and its `route.fallback`", passPin, tellPin, (*judge).pinned},
	{RuleHost, StageIntent, "that is not on one of the `hosts` the request insists on", passHost, tellHost, (*judge).insists},
	{RuleOrigin, StageIntent, "other than the one that holds the snapshot, or the sandbox to fork", passing(tellOrigin), tellOrigin, (*judge).hasOrigin},
	{RuleAuthMode, StageIntent, "that is not this machine, where `route.constraints.auth_mode` pins `local` or `host-session`", passAuthMode, tellAuthMode,
		func(j *judge) bool { return j.Policy.AuthMode != "" }},
	{RuleReach, StageIntent, "on a host that is not reached through `reachability.tunnel`, or not with `reachability.identity`", passReach, tellReach,
		func(j *judge) bool { return j.Reach.asked() }},

	{RulePolicyUnreadable, StagePermission, "while a policy cannot be read", passNever, tellUnread, (*judge).unread},
	{RulePolicyAbsent, StagePermission, "of an account no policy is written for, in a catalog that has policies", passNever, tellUngoverned, (*judge).ungoverned},
	{RuleAllowedExtension, StagePermission, "of an extension that a policy forbids, or leaves out of `extensions.allowed`", passAllowedExtension, tellAllowedExtension,
		saying(func(p *AccountPolicy) bool { return !p.Extensions.empty() })},
	{RuleAllowedHost, StagePermission, "on a host that a policy forbids, or leaves out of `hosts.allowed`", passAllowedHost, tellAllowedHost,
		saying(func(p *AccountPolicy) bool { return !p.Hosts.empty() })},
	{RuleAllowedRegion, StagePermission, "that may run in a region a policy forbids, or leaves out of `regions.allowed`", passAllowedRegion, tellAllowedRegion,
		saying(func(p *AccountPolicy) bool { return !p.Regions.empty() })},
	{RuleAllowedIsolation, StagePermission, "that could run this sandbox in less isolation than a policy's `require_isolation`", passAllowedIsolation, tellAllowedIsolation,
		saying(func(p *AccountPolicy) bool { return p.RequireIsolation != "" })},
	{RuleAllowedBilling, StagePermission, "that is metered, where a policy's `billing` leaves out how the request pays", passAllowedBilling, tellAllowedBilling,
		saying(func(p *AccountPolicy) bool { return p.Billing != nil })},

	{RuleHandler, StageViability, "whose handler this build does not have", available(RuleHandler), tellUnavailable, (*judge).lacks},
	{RuleNotYet, StageViability, "that comes with a later release", available(RuleNotYet), tellUnavailable, (*judge).lacks},
	{RuleCredentials, StageViability, "whose credentials are missing", available(RuleCredentials), tellUnavailable, (*judge).lacks},
	{RuleHostUnfit, StageViability, "whose machine cannot be used", available(RuleHostUnfit), tellUnavailable, (*judge).lacks},
	{RuleUnreachable, StageViability, "that did not answer a moment ago", available(RuleUnreachable), tellUnavailable, (*judge).lacks},

	{RuleIsolation, StageViability, "whose strongest isolation is below the floor (`isolation.level`, `route.constraints.require_isolation`)", passIsolation, tellIsolation,
		func(j *judge) bool { return j.floor != "" }},
	{RuleEgress, StageViability, "that cannot enforce the network policy; `network.default: allow` is fine anywhere", passEgress, tellEgress,
		func(j *judge) bool { return j.egress != extensions.EgressNone }},
	{RuleTTL, StageViability, "where no sandbox may live as long as the ttl", passTTL, tellTTL, nil},
	{RuleBilling, StageViability, "whose `billing` is another than the request states; nobody pays for an own place", passBilling, tellBilling, nil},
	{RuleExpiry, StageViability, "on platform credit that neither ends sandboxes by itself nor finds them again by id", passExpiry, tellExpiry,
		func(j *judge) bool { return j.Billing != BillingBYOK }},
	{RuleCredit, StageViability, "that platform credit would pay for, or a fee that grows with time, and that ends no sandbox by itself or has no known price; a create also counts the credit that an org was granted", passCredit, tellCredit, nil},
	{RuleRegion, StageViability, "outside `route.constraints.region`", passRegion, tellRegion, func(j *judge) bool { return j.Policy.Region != "" }},
	{RuleLimits, StageViability, "that does not hold cpu, memory, disk or process limits, unless `resources.best_effort` is set", passLimits, tellLimits,
		func(j *judge) bool { return len(j.limits) > 0 }},
	{RuleResources, StageViability, "smaller than the resources asked for", passResources, tellResources,
		(*judge).sized},
	{RuleGPU, StageViability, "without a GPU where one is asked for", passGPU, tellGPU, (*judge).wantsGPU},
	{RuleReadOnly, StageViability, "that cannot keep a workspace of `access: ro` from being written", passReadOnly, tellReadOnly,
		func(j *judge) bool { return j.Spec.Workspace.Access == extensions.AccessRO }},
	{RuleSecrets, StageViability, "that cannot deliver secrets as the profile's `secrets_as` says, where it says `file` or there are any", passSecrets, tellSecrets,
		func(j *judge) bool { return j.Spec.SecretsAs != "" || len(j.Spec.SecretNames) > 0 }},
	{RuleWorkload, StageViability, "that does not list `image`, `compose` or `containers` among its requirement kinds where the profile is made of one", passWorkload, tellWorkload,
		func(j *judge) bool { return j.workload != "" }},
	{RuleRuntime, StageViability, "that lacks a runtime kind of `requires.runtime`", passRuntime, tellRuntime,
		func(j *judge) bool { return len(j.Spec.Requires.Runtime) > 0 }},
	{RuleRequirement, StageViability, "that lacks a requirement kind of `requires.capabilities`", passRequirement, tellRequirement,
		func(j *judge) bool { return len(j.Spec.Requires.Capabilities) > 0 }},
	{RuleOS, StageViability, "whose operating system is none of `requires.os`; a host's counts once it was looked at", passOS, tellOS,
		func(j *judge) bool { return len(j.Spec.Requires.OS) > 0 }},
	{RuleArch, StageViability, "whose architecture is none of `requires.arch`; a host's counts once it was looked at", passArch, tellArch,
		func(j *judge) bool { return len(j.Spec.Requires.Arch) > 0 }},
	powerRule(RulePowerExec, extensions.PowerExec, "that cannot run commands, where the readiness probe or the toolchain needs it"),
	powerRule(RulePowerFiles, extensions.PowerFiles, "that cannot transfer files, where a mirrored workspace needs it"),
	powerRule(RulePowerPause, extensions.PowerPause, "that cannot pause, for `desired_mode = \"paused\"`"),
	powerRule(RulePowerFork, extensions.PowerFork, "that cannot fork, for `from_sandbox`"),
	powerRule(RulePowerSnapshot, extensions.PowerSnapshot, "that cannot restore, for `from_snapshot`"),
	{RuleCapacity, StageViability, "where more than 90 % of a known `capacity` is in use, or of the limit that the place tells; a plan does not count", passCapacity, tellCapacity, nil},
	{RuleOption, StageViability, "that does not know, or misses, one of the `options` given for it", passOption, tellOption, nil},
	{RulePrice, StageViability, "whose price cannot be worked out for this request: a number does not fit, or a fee is in another currency", passPrice, tellPrice,
		func(j *judge) bool { return j.unpriced }},
	{RuleMaxCost, StageViability, "above `route.constraints.max_cost_per_hour`, or metered at an unknown price", passMaxCost, tellMaxCost,
		func(j *judge) bool { return j.Policy.MaxCostPerHour != nil }},
}

// saying skips a rule about which no policy says anything.
func saying(says func(*AccountPolicy) bool) func(*judge) bool {
	return func(j *judge) bool { return j.Permission.any(says) }
}

// passing is for rules that rarely refuse: what has a reason does not pass.
func passing(tell func(*judge, *Candidate) (string, string)) func(*judge, *Candidate) bool {
	return func(j *judge, c *Candidate) bool {
		reason, _ := tell(j, c)
		return reason == ""
	}
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
	{extensions.PowerExec, "the toolchain runs commands", func(q *Query) bool { return q.Spec.Toolchain.Runs() }},
	{extensions.PowerFiles, "the mirrored workspace is brought back", func(q *Query) bool {
		w := q.Spec.Workspace
		return w.Mode == extensions.WorkspaceMirror && w.Access != extensions.AccessNone
	}},
	{extensions.PowerPause, "desired_mode is paused", func(q *Query) bool { return q.DesiredMode == ModePaused }},
	{extensions.PowerFork, "from_sandbox is set", func(q *Query) bool { return q.Spec.FromSandbox != "" }},
	{extensions.PowerSnapshot, "from_snapshot is set", func(q *Query) bool { return q.Spec.FromSnapshot != nil }},
}
