package compose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	maxViolations = 200 // per refusal
	maxNamed      = 5   // Dockerfiles that the remedy names
	noGrant       = "no profile can allow it"

	defaultBinding = "ext.compose-ssh"
)

// findings collects everything that a stack is refused for.
type findings struct {
	allow   map[string]bool
	binding string // whose options lift rules
	seen    map[Violation]bool
	list    []Violation
	// file is the Dockerfile being judged, "" for the stack; files and stack say where findings were made.
	file  string
	files map[string]bool
	stack bool
}

func newFindings(allow []string) *findings {
	f := &findings{allow: map[string]bool{}, binding: defaultBinding, seen: map[Violation]bool{}, files: map[string]bool{}}
	for _, a := range allow {
		f.allow[a] = true
	}
	return f
}

// granted reports whether the profile allows the rule for the argument, "" for a rule that takes none.
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

// refuse records a violation that no grant lifts. found says briefly what is there.
func (f *findings) refuse(rule, where, found string) {
	f.record(rule, where, found, noGrant)
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

// unset records a variable that nobody sets, with the ways to set it.
func (f *findings) unset(name, where, found string) {
	const rule = "interpolate-environment"
	if f.granted(rule, name) {
		return
	}
	r := ruleByID(rule)
	r.Argument = extensions.Clean(name, 60)
	f.record(rule, where, found, fmt.Sprintf("set it in the sandbox's `env` or in an env file of the bundle, or give it a default, "+
		"${%s:-…}; a profile allows it to be empty with %s", r.Argument, r.How()))
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
	if f.file == "" {
		f.stack = true
	} else {
		f.files[f.file] = true
	}
}

// remedy names the files to change.
func (f *findings) remedy() string {
	var change []string
	if f.stack {
		change = append(change, "the compose file")
	}
	names := sortedKeys(f.files)
	for i, name := range names {
		names[i] = extensions.Clean(name, 160)
	}
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", more))
	}
	switch len(names) {
	case 0:
	case 1:
		change = append(change, "the Dockerfile "+names[0])
	default:
		change = append(change, "the Dockerfiles "+strings.Join(names, ", "))
	}
	how := "Change " + strings.Join(change, " and ")
	if slices.ContainsFunc(f.list, func(v Violation) bool { return v.Grant != noGrant }) {
		how += ", or allow it in the profile as shown, under options." + f.binding
	}
	return how + "."
}

// err returns nil if nothing was found.
func (f *findings) err() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortFunc(f.list, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Reason, b.Reason))
	})
	return extensions.Errorf(extensions.KindInvalid, "%w", &PolicyError{Violations: f.list}).At("compose").
		WithRemedy("%s", f.remedy())
}
