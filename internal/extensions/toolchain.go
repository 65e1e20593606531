package extensions

import (
	"bytes"
	"encoding/json"
)

// Toolchain holds the commands that run inside after the workspace exists, and before
// the sandbox ends. The engine runs them through Execer; a backend only sets Env.
type Toolchain struct {
	Kits        []string          `json:"kits,omitempty"`         // "kit.x@1.0.0", in compose order; told, not run
	Install     []Step            `json:"install,omitempty"`      // the kits' first, each command once
	PostAcquire []Step            `json:"post_acquire,omitempty"` // such as `npm ci`; after every install
	PreRelease  []Step            `json:"pre_release,omitempty"`  // best effort before teardown
	Env         map[string]string `json:"env,omitempty"`          // of every program inside; Spec.Env wins
	// EnvInside holds, by name, the variables that refer to values known only inside:
	// each is a word for /bin/sh. The engine lets commands expand all of them before it
	// sets any; no backend sets them.
	EnvInside map[string]string `json:"env_inside,omitempty"`
}

// Runs reports whether there is any command to run.
func (t Toolchain) Runs() bool { return len(t.Install)+len(t.PostAcquire)+len(t.PreRelease) > 0 }

// Step is one command of a toolchain, for the sandbox's shell. Without a timeout
// its JSON is the command alone.
type Step struct {
	Run     string
	Timeout Duration // 0 = as long as what it is part of
}

type stepJSON struct {
	Run     string   `json:"run"`
	Timeout Duration `json:"timeout"`
}

// MarshalJSON implements json.Marshaler.
func (s Step) MarshalJSON() ([]byte, error) {
	if s.Timeout == 0 {
		return json.Marshal(s.Run)
	}
	return json.Marshal(stepJSON(s))
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Step) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte{'"'}) {
		*s = Step{}
		return json.Unmarshal(b, &s.Run)
	}
	return json.Unmarshal(b, (*stepJSON)(s))
}
