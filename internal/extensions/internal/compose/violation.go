package compose

import (
	"cmp"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxViolations bounds what one refusal lists.
const maxViolations = 200

// findings collects everything a stack is refused for.
type findings struct {
	allow map[string]bool
	seen  map[Violation]bool
	list  []Violation
}

func newFindings(allow []string) *findings {
	f := &findings{allow: map[string]bool{}, seen: map[Violation]bool{}}
	for _, a := range allow {
		f.allow[a] = true
	}
	return f
}

// granted reports whether the profile allows the rule for the argument, "" for
// a rule that takes none.
func (f *findings) granted(rule, arg string) bool {
	r := ruleByID(rule)
	if !r.Grantable || (r.Argument != "") != (arg != "") {
		return false
	}
	if arg != "" {
		rule += ":" + arg
	}
	return f.allow[rule]
}

// refuse records a violation that no grant lifts. found says what is there, in
// few words.
func (f *findings) refuse(rule, where, found string) {
	f.record(rule, where, found, "no profile can allow it")
}

// refuseUnless records a violation that a grant of the argument lifts.
func (f *findings) refuseUnless(rule, arg, where, found string) {
	if f.granted(rule, arg) {
		return
	}
	r := ruleByID(rule)
	if r.Argument != "" {
		r.Argument = extensions.Clean(arg, 60)
	}
	f.record(rule, where, found, r.How())
}

func (f *findings) record(rule, where, found, how string) {
	v := Violation{Rule: rule, Where: extensions.Clean(where, 160), Grant: how,
		Reason: extensions.Clean(found, 200) + ": " + ruleByID(rule).Reason}
	if f.seen[v] {
		return
	}
	if len(f.list) == maxViolations {
		return
	}
	f.seen[v] = true
	f.list = append(f.list, v)
}

// err is nil where nothing was found.
func (f *findings) err() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortFunc(f.list, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Reason, b.Reason))
	})
	return extensions.Errorf(extensions.KindInvalid, "%w", &PolicyError{Violations: f.list}).At("compose").
		WithRemedy("Change the compose file, or let the profile allow what it may under options.ext.compose-ssh.allow.")
}
