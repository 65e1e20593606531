// Package compose reads a Compose stack and decides whether it may run on an owner's machine.
//
// Membership in the docker group is root on that machine, so this policy is the only wall between a compose
// file and the machine's owner. It refuses everything in the model that is not known to be harmless, and
// every refusal has a rule (see Rules). Loading reads nothing but the given bundle: no file of the operator's
// machine, no environment of the process, nothing remote.
//
// The policed model is then rendered for the host: our own labels, limits, networks and images replace what
// the file asked for.
package compose

import (
	"fmt"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What happens to published ports. See Input.Publish.
const (
	PublishAsWritten = "as-written" // loopback addresses only
	PublishLoopback  = "loopback"   // every published port moves to 127.0.0.1
	PublishNone      = "none"       // nothing is published; ports are only exposed
)

// Input is a stack as a profile names it.
type Input struct {
	// Source is the tar of the bundle or the workspace; never nil.
	Source extensions.WorkspaceSource
	// Files are the compose files in order of override, relative to the root of Source. Empty means the first
	// that exists of compose.yaml, compose.yml, docker-compose.yaml and docker-compose.yml.
	Files []string
	// Profiles are the active Compose profiles.
	Profiles []string
	// EnvFiles are read for interpolation, relative to the root of Source; later files win. Empty means
	// ".env" beside the first file, if it exists.
	EnvFiles []string
	// Env holds the spec's own variables, which override EnvFiles in interpolation.
	Env map[string]string
	// SecretNames are variables that exist only at run time: interpolating one is refused.
	SecretNames []string
	// Allow are the profile's grants: "rule" or "rule:argument".
	Allow []string
	// Deny is set if the sandbox has no network by default.
	Deny bool
	// Guarded is set if the host's firewall shuts the network under Deny: only such a network can publish
	// ports.
	Guarded bool
	// Publish is PublishAsWritten, PublishLoopback or PublishNone. Empty means PublishNone under Deny, else
	// PublishLoopback.
	Publish string
}

// Rule is one kind of refusal. Ids are stable.
type Rule struct {
	ID      string
	Summary string // what is refused
	Reason  string // why
	// Grantable is set if a profile may allow it by Input.Allow.
	Grantable bool
	// Argument describes a grant's argument, "" if the rule takes none. If it takes one, the bare rule grants
	// nothing.
	Argument string
}

// How says how a profile may allow what the rule refuses, or that none can.
func (r Rule) How() string {
	switch {
	case !r.Grantable:
		return noGrant
	case r.Argument != "":
		return fmt.Sprintf("options.ext.compose-ssh.allow: [%q]", r.ID+":"+r.Argument)
	}
	return fmt.Sprintf("options.ext.compose-ssh.allow: [%q]", r.ID)
}

// Violation is one thing in a stack that the policy refuses.
type Violation struct {
	Rule   string // the id of a Rule
	Where  string // a path in the model: services.web.volumes[0]
	Reason string // what was found there and why it is refused
	Grant  string // how a profile may allow it, or that none can
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s: %s; %s", v.Rule, v.Where, v.Reason, v.Grant)
}

// PolicyError lists everything that a stack was refused for, sorted by place; never empty. Load wraps it in
// an extensions.Error of KindInvalid.
type PolicyError struct{ Violations []Violation }

func (e *PolicyError) Error() string {
	lines := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		lines[i] = v.String()
	}
	return fmt.Sprintf("the compose stack is refused (%d):\n  %s", len(lines), strings.Join(lines, "\n  "))
}
