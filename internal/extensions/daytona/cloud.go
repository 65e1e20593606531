package daytona

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
)

// sandbox is one at the vendor, with what only the cloud tells. A listed one has no environment.
type sandbox struct {
	api.Sandbox
	AutoDestroyAt string `json:"autoDestroyAt,omitempty"` // RFC 3339; "" = never
}

// newSandbox is the body of a create, with what only the cloud takes.
type newSandbox struct {
	api.CreateSandbox
	TTLMinutes *int `json:"ttlMinutes,omitempty"` // from its creation; never 0, which means forever
}

// store lends access to where the files of builds go.
type store struct {
	api.StorageAccessDto
	Region string `json:"region,omitempty"`
}

// snapshotting is the state of a snapshot that is being taken. Version 0.190 shows it only once it is there.
const snapshotting api.SnapshotState = "snapshotting"

// state is where a sandbox is in its life.
func (s *sandbox) state() api.SandboxState {
	if s.State == nil {
		return api.SandboxStateUnknown
	}
	return *s.State
}

// at reports whether a sandbox is in one of these states.
func (s *sandbox) at(states ...api.SandboxState) bool { return slices.Contains(states, s.state()) }
