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
	OpUsage          Op = "usage"
	OpCapacity       Op = "capacity"
	OpLabel          Op = "label"
	OpSnapshot       Op = "snapshot"
	OpGetSnapshot    Op = "get-snapshot"
	OpFindSnapshot   Op = "find-snapshot"
	OpDeleteSnapshot Op = "delete-snapshot"
)

// Ops lists every operation a rule may name.
var Ops = []Op{OpAny, OpCreate, OpStart, OpGet, OpFind, OpList, OpDelete, OpExec, OpFiles, OpLogs, OpExtend, OpUsage,
	OpCapacity, OpLabel, OpSnapshot, OpGetSnapshot, OpFindSnapshot, OpDeleteSnapshot}

// Action is what a rule does to a call. Those of the first group answer
// without doing anything; those of the second let the call happen first.
type Action string

// The actions.
const (
	DoDelay        Action = "delay"        // only Rule.Delay, then as usual
	DoUnauthorized Action = "unauthorized" // 401
	DoInvalid      Action = "invalid"      // 400
	DoQuota        Action = "quota"        // 402: the account's limit
	DoNoCapacity   Action = "no-capacity"  // 507: the region is full
	DoThrottle     Action = "throttle"     // 429 with Rule.RetryAfter
	DoUnavailable  Action = "unavailable"  // 503 with Rule.RetryAfter
	DoConflict     Action = "conflict"     // 409: busy, refused
	DoUnreachable  Action = "unreachable"  // no connection; nothing arrived
	DoHangBefore   Action = "hang-before"  // never answers and does nothing

	DoLoseAnswer Action = "lose-answer" // done, and the connection breaks
	DoHang       Action = "hang"        // done, and never answers
	DoVanish     Action = "vanish"      // done and answered, and the object is gone
	DoSlowReady  Action = "slow-ready"  // start only: ready after Rule.Delay
	DoFailReady  Action = "fail-ready"  // start only: fails after Rule.Delay
)

// Actions lists every action.
var Actions = []Action{DoDelay, DoUnauthorized, DoInvalid, DoQuota, DoNoCapacity, DoThrottle, DoUnavailable, DoConflict,
	DoUnreachable, DoHangBefore, DoLoseAnswer, DoHang, DoVanish, DoSlowReady, DoFailReady}

// Rule changes what happens to the calls it matches. The first rule of a
// script that matches and is not used up decides.
type Rule struct {
	Op Op `json:"op"`
	// Name limits the rule to one object: its unique name (the sandbox id) or
	// its title (the name the user gave). Empty matches every object.
	Name string `json:"name,omitempty"`
	// Skip lets that many matching calls pass first.
	Skip int `json:"skip,omitempty"`
	// Times is how many calls the rule acts on; 0 = every one.
	Times int    `json:"times,omitempty"`
	Do    Action `json:"do"`
	// Delay is waited before anything else, except by slow-ready and
	// fail-ready, which use it as said there.
	Delay      Duration `json:"delay,omitempty"`
	RetryAfter Duration `json:"retry_after,omitempty"`
	// Message replaces the service's own words.
	Message string `json:"message,omitempty"`
}

// Script is the service's behaviour; the zero value is a service that works.
type Script struct {
	Rules []Rule `json:"rules,omitempty"`
	// Quota is the most live objects of an account; nil = DefaultQuota.
	Quota *int64 `json:"quota,omitempty"`
	// RequireKey refuses calls without a key.
	RequireKey bool `json:"require_key,omitempty"`
	// Ghosts is how long a list still shows what was deleted.
	Ghosts Duration `json:"ghosts,omitempty"`
}

// DefaultQuota is the limit of live objects per account without a script.
const DefaultQuota = 200

// Duration is written as Go writes one: "250ms".
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

// Check reports the first rule that names nothing known.
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
	return nil
}

// WriteScript makes s the behaviour of the service in dir from the next call
// on, in every process. Counters of earlier rules start anew.
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

// ReadScript returns the behaviour of the service in dir; a missing file is
// the zero Script.
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
