package extensions

import "slices"

// EntrypointMode is the kind of program that a sandbox runs by itself, besides
// requested commands.
type EntrypointMode string

const (
	EntrypointIdle  EntrypointMode = "idle"  // nothing: it waits for commands
	EntrypointImage EntrypointMode = "image" // what its image, or template, starts with
	EntrypointArgv  EntrypointMode = "argv"  // a command of its own
)

// EntrypointModes lists every value.
var EntrypointModes = []EntrypointMode{EntrypointIdle, EntrypointImage, EntrypointArgv}

// Entrypoint is a sandbox's own program. Unless it is idle, its exit ends the sandbox
// at once, with all other processes. The sandbox is then PhaseTerminated after exit
// code 0, otherwise PhaseFailed, with the code in the reason and the true time in
// EndedAt. An entrypoint that ends before the sandbox is ready fails the create
// (KindFailed). It has the environment, the secrets and the workspace from its start.
type Entrypoint struct {
	Mode EntrypointMode `json:"mode,omitempty"` // "" = EntrypointIdle
	Argv []string       `json:"argv,omitempty"` // EntrypointArgv's, literal words
}

// Idle reports whether nothing runs by itself.
func (e Entrypoint) Idle() bool { return e.Mode == "" || e.Mode == EntrypointIdle }

// CheckEntrypoint refuses an entrypoint that the place does not run, with
// KindUnsupported.
func (c Capabilities) CheckEntrypoint(e Entrypoint) error {
	if e.Idle() || slices.Contains(c.Entrypoints, e.Mode) {
		return nil
	}
	return Errorf(KindUnsupported, "the place runs no entrypoint of the kind %q", e.Mode).At("entrypoint").
		WithRemedy("remove entrypoint and run the program as a command, or choose a place that runs one")
}
