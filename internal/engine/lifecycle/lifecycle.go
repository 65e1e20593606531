// Package lifecycle defines the life of a sandbox: its states, the permitted moves and the arithmetic of
// expiry. It is pure: no I/O, no clock, no randomness; now is an argument.
package lifecycle

import "slices"

// State is where a sandbox is in its life. States are stored: append only.
type State string

const (
	// Requested is recorded; no backend is known to have made anything.
	Requested State = "requested"
	// Provisioning means that a backend was asked; something may exist and cost money.
	Provisioning State = "provisioning"
	// Ready means that the readiness probe succeeded.
	Ready State = "ready"
	// Active has been used at least once through the engine.
	Active State = "active"
	// Expired is past its deadline. Remains may still exist and cost money.
	Expired State = "expired"
	// Failed is broken or lost, or its cleanup did not finish. Remains may exist.
	Failed State = "failed"
	// Destroying is being torn down.
	Destroying State = "destroying"
	// Destroyed is proved absent. It is the only final state.
	Destroyed State = "destroyed"
)

// States lists every state in the order of a life.
var States = []State{Requested, Provisioning, Ready, Active, Expired, Failed, Destroying, Destroyed}

// Edge is one permitted move and what causes it.
type Edge struct {
	From, To State
	Why      string
}

// Edges lists every permitted transition.
//
// An extension never revives an expired sandbox, whose name may belong to another by then. Only recreate
// does, and it claims the name anew.
var Edges = []Edge{
	{Requested, Provisioning, "the engine asks a backend"},
	{Requested, Failed, "unknown whether anything was created"},
	{Requested, Destroying, "given up, or its owner died"},
	{Requested, Destroyed, "refused, nothing was created"},
	{Provisioning, Ready, "readiness probe succeeded"},
	{Provisioning, Expired, "its deadline passed before it was ready"},
	{Provisioning, Failed, "provisioning or its cleanup failed"},
	{Provisioning, Destroying, "given up, or its owner died"},
	{Ready, Active, "first use"},
	{Ready, Expired, "its deadline passed"},
	{Ready, Failed, "broken or lost"},
	{Ready, Destroying, "destroy"},
	{Ready, Provisioning, "recreate"},
	{Active, Expired, "its deadline passed"},
	{Active, Failed, "broken or lost"},
	{Active, Destroying, "destroy"},
	{Active, Provisioning, "recreate"},
	{Expired, Destroying, "cleanup"},
	{Expired, Provisioning, "recreate"},
	{Failed, Destroying, "cleanup"},
	{Failed, Provisioning, "recreate"},
	{Destroying, Failed, "teardown failed, residue is left"},
	{Destroying, Destroyed, "proved absent"},
}

// Can reports whether the edge exists. Staying in a state is not an edge.
func Can(from, to State) bool {
	return slices.ContainsFunc(Edges, func(e Edge) bool { return e.From == from && e.To == to })
}

// Valid reports whether s is one of States.
func Valid(s State) bool { return slices.Contains(States, s) }

// Terminal reports whether s is final and costs nothing.
func Terminal(s State) bool { return s == Destroyed }

// Usable reports whether commands can run in the sandbox.
func Usable(s State) bool { return s == Ready || s == Active }

// Unsettled reports whether an operation is under way. If its owner died, recovery must finish or undo it.
func Unsettled(s State) bool { return s == Requested || s == Provisioning || s == Destroying }

// FreesName reports whether entering s frees the name for another sandbox. The name stays free unless the
// sandbox is re-created.
func FreesName(s State) bool { return s == Expired || s == Destroyed }

// Shown returns the state that users see. Active is shown as ready, so using a sandbox never changes what
// a read shows.
func Shown(s State) string {
	if s == Active {
		return string(Ready)
	}
	return string(s)
}
