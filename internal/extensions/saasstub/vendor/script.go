package vendor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Op is one operation of the service, as rules name it.
type Op string

// The operations.
const (
	OpAny            Op = "*"
	OpCreate         Op = "create"
	OpStart          Op = "start" // the last step of a creation; readiness follows
	OpGet            Op = "get"   // a look at one object, by its own reference
	OpFind           Op = "find"  // a look-up by name
	OpList           Op = "list"
	OpDelete         Op = "delete"
	OpExec           Op = "exec"
	OpFiles          Op = "files" // upload and download
	OpLogs           Op = "logs"
	OpExtend         Op = "extend"
	OpPause          Op = "pause"
	OpResume         Op = "resume"
	OpUsage          Op = "usage"
	OpCapacity       Op = "capacity"
	OpLabel          Op = "label"
	OpPreview        Op = "preview"
	OpFork           Op = "fork"
	OpSnapshot       Op = "snapshot"
	OpGetSnapshot    Op = "get-snapshot"
	OpFindSnapshot   Op = "find-snapshot"
	OpReadSnapshot   Op = "read-snapshot"
	OpDeleteSnapshot Op = "delete-snapshot"
)

// Ops lists every operation a rule may name.
var Ops = []Op{OpAny, OpCreate, OpStart, OpGet, OpFind, OpList, OpDelete, OpExec, OpFiles, OpLogs, OpExtend, OpPause, OpResume, OpUsage,
	OpCapacity, OpLabel, OpPreview, OpFork, OpSnapshot, OpGetSnapshot, OpFindSnapshot, OpReadSnapshot, OpDeleteSnapshot}

// Action is what a rule does to a call. Those of the first group answer without doing anything; those of the
// second let the call happen first.
type Action string

// The actions.
const (
	DoDelay        Action = "delay"        // only Rule.Delay, then as usual
	DoUnauthorized Action = "unauthorized" // 401
	DoInvalid      Action = "invalid"      // 400
	DoQuota        Action = "quota"        // 402: the account's limit
	DoNoCapacity   Action = "no-capacity"  // 507: the region is full
	DoNotOffered   Action = "not-offered"  // 403 or 404: the plan does not allow it, or there is no such image
	DoThrottle     Action = "throttle"     // 429 with Rule.RetryAfter
	DoUnavailable  Action = "unavailable"  // 503 with Rule.RetryAfter
	DoConflict     Action = "conflict"     // 409: busy, refused
	DoUnreachable  Action = "unreachable"  // no connection; nothing arrived
	DoBadGateway   Action = "bad-gateway"  // 502: nothing is done, which the caller cannot know
	DoHangBefore   Action = "hang-before"  // does nothing and never answers

	DoLoseAnswer Action = "lose-answer" // done, and the connection breaks
	DoHang       Action = "hang"        // done, but never answers
	DoVanish     Action = "vanish"      // done and answered, and the object is gone
	DoSlowReady  Action = "slow-ready"  // start only: ready after Rule.Delay
	DoFailReady  Action = "fail-ready"  // start only: fails after Rule.Delay
	DoStartLater Action = "start-later" // start only: ready, and billed, after Rule.Delay
	DoGrow       Action = "grow"        // create only: twice the size that was asked for
	DoRepeatPage Action = "repeat-page" // list only: the next page is the same one again
	DoEndEarly   Action = "end-early"   // list only: no page is said to follow
)

// Actions lists every action.
var Actions = []Action{DoDelay, DoUnauthorized, DoInvalid, DoQuota, DoNoCapacity, DoNotOffered, DoThrottle, DoUnavailable, DoConflict,
	DoUnreachable, DoBadGateway, DoHangBefore, DoLoseAnswer, DoHang, DoVanish, DoSlowReady, DoFailReady, DoStartLater,
	DoGrow, DoRepeatPage, DoEndEarly}

// Rule changes what happens to the calls it matches. The first rule of a script that matches and is not used
// up decides.
type Rule struct {
	Op Op `json:"op"`
	// Name limits the rule to one object: its unique name (the sandbox id) or its title (the name the user
	// gave). Empty matches every object.
	Name string `json:"name,omitempty"`
	// Skip lets that many matching calls pass first.
	Skip int `json:"skip,omitempty"`
	// Times bounds the calls the rule acts on; 0 = all.
	Times int    `json:"times,omitempty"`
	Do    Action `json:"do"`
	// Delay passes before anything else; slow-ready, fail-ready and start-later use it as described there.
	Delay      Duration `json:"delay,omitempty"`
	RetryAfter Duration `json:"retry_after,omitempty"`
	// Message replaces the service's own text.
	Message string `json:"message,omitempty"`
}

// Script is the service's behavior; the zero value is a service that works.
type Script struct {
	Rules []Rule `json:"rules,omitempty"`
	// Quota bounds an account's live objects; nil = DefaultQuota.
	Quota *int64 `json:"quota,omitempty"`
	// Every is the shortest time between two calls of an operation; what comes sooner is throttled, and told
	// when to come again.
	Every map[Op]Duration `json:"every,omitempty"`
	// RequireKey refuses calls without a key.
	RequireKey bool `json:"require_key,omitempty"`
	// Teams are the names of keys' teams. If it is set, a key shows what its team has made, and nothing else.
	Teams map[string]string `json:"teams,omitempty"`
	// Ghosts is how long lists still show deleted objects.
	Ghosts Duration `json:"ghosts,omitempty"`
	// Page is the most objects that a page of a list has; 0 = DefaultPage.
	Page int `json:"page,omitempty"`
}

// DefaultQuota bounds an account's live objects without a script.
const DefaultQuota = 200

// Duration is a time.Duration in Go's format: "250ms".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

const scriptFile = "script.json"

// Check returns an error for the first rule with an unknown name.
func (s Script) Check() error {
	for i, r := range s.Rules {
		switch {
		case !slices.Contains(Ops, r.Op):
			return fmt.Errorf("rule %d: unknown op %q", i, r.Op)
		case !slices.Contains(Actions, r.Do):
			return fmt.Errorf("rule %d: unknown action %q", i, r.Do)
		case r.Skip < 0 || r.Times < 0 || r.Delay < 0 || r.RetryAfter < 0:
			return fmt.Errorf("rule %d: skip, times, delay and retry_after cannot be negative", i)
		}
	}
	for op, d := range s.Every {
		if !slices.Contains(Ops, op) || op == OpAny || d < 0 {
			return fmt.Errorf("every: %q: %s is not an operation and a time", op, time.Duration(d))
		}
	}
	return nil
}

// WriteScript makes s the behavior of the service in dir from the next call on, in every process. It resets
// the counters of earlier rules.
func WriteScript(dir string, s Script) error {
	if err := s.Check(); err != nil {
		return err
	}
	return At(dir).update(func(st *state) error {
		clear(st.Hits)
		b, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return err
		}
		return replaceFile(filepath.Join(dir, scriptFile), b)
	})
}

// ReadScript returns the behavior of the service in dir; a missing file yields the zero Script.
func ReadScript(dir string) (Script, error) {
	var s Script
	b, err := os.ReadFile(filepath.Join(dir, scriptFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", scriptFile, err)
	}
	return s, s.Check()
}
