package route

// Rule is the stable id of a rule; ids are stored, so append only.
type Rule string

// The rules; see Rules for what each means.
const (
	RulePin    Rule = "intent.pin"
	RuleHost   Rule = "intent.host"
	RuleOrigin Rule = "intent.origin"

	RuleHandler     Rule = "viability.handler"
	RuleNotYet      Rule = "viability.not-yet"
	RuleCredentials Rule = "viability.credentials"
	RuleHostUnfit   Rule = "viability.host"

	RuleIsolation     Rule = "viability.isolation-floor"
	RuleEgress        Rule = "viability.egress"
	RuleTTL           Rule = "viability.ttl-max"
	RuleExpiry        Rule = "viability.expiry"
	RuleRegion        Rule = "viability.region"
	RuleLimits        Rule = "viability.limits"
	RuleResources     Rule = "viability.resources"
	RuleGPU           Rule = "viability.gpu"
	RuleReadOnly      Rule = "viability.read-only"
	RuleRuntime       Rule = "viability.requires.runtime"
	RuleRequirement   Rule = "viability.requires.capability"
	RuleWorkload      Rule = "viability.workload"
	RuleOption        Rule = "viability.option"
	RuleMaxCost       Rule = "viability.max-cost"
	RulePowerExec     Rule = "viability.power.exec"
	RulePowerFiles    Rule = "viability.power.files"
	RulePowerPause    Rule = "viability.power.pause"
	RulePowerFork     Rule = "viability.power.fork"
	RulePowerSnapshot Rule = "viability.power.snapshot"
)
