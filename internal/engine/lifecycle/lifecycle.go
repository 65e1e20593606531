// Package lifecycle is the life of a sandbox: its states, the edges between
// them and the arithmetic of expiry. It is pure: no I/O, no clock, no
// randomness; now is an argument.
package lifecycle

import "slices"

// State is where a sandbox is in its life. States are stored: append only.
type State string

const (
	// Requested: recorded, nothing asked of a backend that is known to have
	// made something.
	Requested State = "requested"
	// Provisioning: a backend was asked; something may exist and cost money.
	Provisioning State = "provisioning"
	// Ready: the readiness probe succeeded.
	Ready State = "ready"
	// Active: used at least once through the engine.
	Active State = "active"
	// Expired: past its end. Remains may still exist and cost money.
	Expired State = "expired"
	// Failed: broken, lost, or a cleanup did not finish. Remains may exist.
	Failed State = "failed"
	// Destroying: being torn down.
	Destroying State = "destroying"
	// Destroyed: proved absent; the only end.
	Destroyed State = "destroyed"
)

// States lists every state in the order of a life.
var States = []State{Requested, Provisioning, Ready, Active, Expired, Failed, Destroying, Destroyed}

// Edge is one permitted move and what makes it.
type Edge struct {
	From, To State
	Why      string
}

// Edges is the table every transition is checked against.
//
// An expired sandbox is never resurrected by an extension: its name may be
// someone else's by then. Recreate is its way back, and claims the name anew.
var Edges = []Edge{
	{Requested, Provisioning, "a backend is asked"},
	{Requested, Failed, "it is unknown whether anything was made"},
	{Requested, Destroying, "given up, or its owner died"},
	{Requested, Destroyed, "refused, nothing was made"},
	{Provisioning, Ready, "readiness probe succeeded"},
	{Provisioning, Expired, "its end passed before it was ready"},
	{Provisioning, Failed, "provisioning or its cleanup failed"},
	{Provisioning, Destroying, "given up, or its owner died"},
	{Ready, Active, "first use"},
	{Ready, Expired, "its end passed"},
	{Ready, Failed, "broken or lost"},
	{Ready, Destroying, "destroy"},
	{Ready, Provisioning, "recreate"},
	{Active, Expired, "its end passed"},
	{Active, Failed, "broken or lost"},
	{Active, Destroying, "destroy"},
	{Active, Provisioning, "recreate"},
	{Expired, Destroying, "cleanup"},
	{Expired, Provisioning, "recreate"},
	{Failed, Destroying, "cleanup"},
	{Failed, Provisioning, "recreate"},
	{Destroying, Failed, "teardown failed, something is left"},
	{Destroying, Destroyed, "proved absent"},
}

// Can reports whether the edge exists. Staying is not an edge.
func Can(from, to State) bool {
	return slices.ContainsFunc(Edges, func(e Edge) bool { return e.From == from && e.To == to })
}

// Valid reports whether s is one of States.
func Valid(s State) bool { return slices.Contains(States, s) }

// Terminal reports a state that nothing leaves and that costs nothing.
func Terminal(s State) bool { return s == Destroyed }

// Usable reports a sandbox that commands can be run in.
func Usable(s State) bool { return s == Ready || s == Active }

// Unsettled reports a state in which an operation is under way: if the one
// who does it died, recovery has to finish or undo it.
func Unsettled(s State) bool { return s == Requested || s == Provisioning || s == Destroying }

// FreesName reports a state on entry to which the name is free for another
// sandbox. It stays free afterwards unless the sandbox is recreated.
func FreesName(s State) bool { return s == Expired || s == Destroyed }

// Shown is the state users see: using a sandbox never changes what a read
// shows, so active is shown as ready.
func Shown(s State) string {
	if s == Active {
		return string(Ready)
	}
	return string(s)
}
