package composessh

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// How long operations wait for a sandbox's lock, in seconds: a create may hold it for long, and a look should
// not wait that long.
const (
	lockWaitLong  = "120"
	lockWaitShort = "15"
)

// operation is one script with its parameters.
type operation struct {
	id       extensions.ID
	files    []string // in sh/, the operation last
	vars     map[string]string
	payload  io.Reader
	progress func(line string)
}

// answer is the answer of every script; each fills its part.
type answer struct {
	Failure *failure `json:"failure"`
	// Containers are id, account, generation, service, ports, status,
	// container, networks, folder.
	Containers [][]string `json:"containers"`
	Records    string     `json:"records"`  // see sh/look.sh
	Health     string     `json:"health"`   // see health_of in sh/look.sh
	Warnings   string     `json:"warnings"` // lines
	Adopted    bool       `json:"adopted"`
	DenyProof  string     `json:"deny_proof"` // see deny.go
	EngineSeen string     `json:"engine_seen"`
	Found      bool       `json:"found"`
	Busy       string     `json:"busy"` // the current operation
	Gone       bool       `json:"gone"`
	Removed    string     `json:"removed"` // words
	Started    string     `json:"started"` // milliseconds since 1970 by the caller's clock
	Ended      string     `json:"ended"`
	Exits      string     `json:"exits"` // see exits_of in sh/look.sh
	// ClockCaller and ClockWall are the caller's clock (milliseconds) and the host's (seconds) at one moment.
	ClockCaller string `json:"clock_caller"`
	ClockWall   string `json:"clock_wall"`
	PausedMS    int64  `json:"paused_ms"`
	// Snapshot is the one asked for.
	Snapshot keptSnapshot `json:"snapshot"`
	// Stack is what a sandbox's stack was made of; see compose.Indexed.
	Stack json.RawMessage `json:"stack"`
}

// call runs a script on the host in one exec and classifies its refusals.
func (b *Backend) call(ctx context.Context, o operation) (answer, error) {
	var a answer
	if err := ctx.Err(); err != nil {
		return a, extensions.Errorf(extensions.KindInterrupted, "the host was not contacted: %w", err)
	}
	vars := map[string]string{"root": b.settings.root, "account": b.settings.account, "id": string(o.id), "lock_wait": lockWaitShort}
	maps.Copy(vars, o.vars)
	progress := func(line string) {
		if b.onStep != nil {
			b.onStep(line)
		}
		if o.progress != nil {
			o.progress(line)
		}
	}
	err := b.client.Call(ctx, remote.Call{Script: b.before + script(o.files...), Vars: vars, Payload: o.payload, Progress: progress}, &a)
	if err != nil {
		return a, err
	}
	if a.Failure != nil {
		return a, a.Failure.classify()
	}
	return a, nil
}

// fromMillis reads a time from an answer; zero if there is none.
func fromMillis(text string) time.Time {
	ms, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
