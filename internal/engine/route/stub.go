package route

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

// RuleInfo explains one rule.
type RuleInfo struct {
	ID      Rule
	Stage   Stage
	Refuses string
}

// Rules lists every rule.
var Rules []RuleInfo

// Select decides.
func Select(q Query) Decision {
	return Decision{err: extensions.Errorf(extensions.KindInternal, "route: under construction")}
}

// Explain tells the decision to a person.
func (d Decision) Explain() string { return "" }
