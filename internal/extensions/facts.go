package extensions

import (
	"slices"
	"strings"
)

// Facts are the findings of a probe at one place of one binding, a host or an account.
// They hold only there, age, and only narrow the declaration. The engine uses them to
// make or change a sandbox, never to plan one.
type Facts struct {
	// Machine describes the host; nil for an account.
	Machine *HostFacts `json:"-"`
	// Narrowing and Powers limit the declaration to what the place offers; nil = no
	// limit.
	Narrowing Narrowing `json:"narrowing,omitzero"`
	Powers    []Power   `json:"powers,omitzero"`
	// Unfit says why this binding can run nothing here, and how to change that; nil =
	// it can run.
	Unfit []string `json:"unfit,omitempty"`
	// Notes say, for people, what is missing and how to get it, each after its
	// subject and a colon: "egress: …", "gpu: …", "expiry: …", "secrets: …",
	// "resources: …", "isolation: …", "ttl: …".
	Notes []string `json:"notes,omitempty"`
}

// Narrow returns the capabilities and powers of a binding that remain at the place.
func (f Facts) Narrow(c Capabilities, powers []Power) (Capabilities, []Power) {
	_ = narrowSet("powers", &powers, f.Powers) // a place that has more than its binding declares is not asked for it
	return c.Within(f.Narrowing).Agree(powers)
}

// Reasons adds the notes to the reasons that a host's arguments gave. A note replaces
// the reasons on its subject, because facts outweigh arguments.
func (f Facts) Reasons(given []string) []string {
	subject := func(s string) string { before, _, _ := strings.Cut(s, ": "); return before }
	out := slices.DeleteFunc(slices.Clone(given), func(g string) bool {
		return slices.ContainsFunc(f.Notes, func(n string) bool { return subject(n) == subject(g) })
	})
	return append(out, f.Notes...)
}
