package extensions

import (
	"slices"
	"strings"
)

// Facts are what a probe found at one place of one binding, a host or an account.
// They hold there and nowhere else, age, and only narrow what is declared: they
// are used to make or change a sandbox, never to plan one.
type Facts struct {
	// Machine describes the host; nil for an account.
	Machine *HostFacts `json:"-"`
	// Narrowing and Powers are what the place offers; nil = all that is declared.
	Narrowing Narrowing `json:"narrowing,omitzero"`
	Powers    []Power   `json:"powers,omitzero"`
	// Unfit says why nothing of this binding can run here, and how to change that;
	// nil = it can.
	Unfit []string `json:"unfit,omitempty"`
	// Notes say, for people, what is missing and how to get it, each after its
	// subject and a colon: "egress: …", "gpu: …", "expiry: …", "secrets: …",
	// "resources: …", "isolation: …", "ttl: …".
	Notes []string `json:"notes,omitempty"`
}

// Narrow returns what is left of a binding's capabilities and powers at the place.
func (f Facts) Narrow(c Capabilities, powers []Power) (Capabilities, []Power) {
	_ = narrowSet("powers", &powers, f.Powers) // a place that has more than its binding declares is not asked for it
	return c.Within(f.Narrowing).Agree(powers)
}

// Reasons adds the notes to the reasons that a host's arguments gave. A note on a
// subject stands in their place: what was found counts, not what would be allowed.
func (f Facts) Reasons(given []string) []string {
	subject := func(s string) string { before, _, _ := strings.Cut(s, ": "); return before }
	out := slices.DeleteFunc(slices.Clone(given), func(g string) bool {
		return slices.ContainsFunc(f.Notes, func(n string) bool { return subject(n) == subject(g) })
	})
	return append(out, f.Notes...)
}
