package daytona

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"

// sandbox is one at the vendor, with what only the cloud tells. A listed one has no environment.
type sandbox struct {
	api.Sandbox
	AutoDestroyAt string `json:"autoDestroyAt,omitempty"` // RFC 3339; "" = never
}

// newSandbox is the body of a create, with what only the cloud takes.
type newSandbox struct {
	api.CreateSandbox
	TTLMinutes *int64 `json:"ttlMinutes,omitempty"` // from its creation; never 0, which means forever
}

// state is where a sandbox is in its life.
func (s *sandbox) state() api.SandboxState {
	if s.State == nil {
		return api.SandboxStateUnknown
	}
	return *s.State
}
