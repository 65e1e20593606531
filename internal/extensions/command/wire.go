package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// wireVersion is the version of everything in this file. A program refuses a request of another one, and so do we an
// answer.
const wireVersion = 1

// The verbs: each is one run of the program.
const (
	verbProvision = "provision" // -> sandboxes: the one
	verbStatus    = "status"    // -> sandboxes: those asked for, in order; without any asked for, all of the account
	verbFind      = "find"      // -> sandboxes: the one, or none
	verbTeardown  = "teardown"  // -> report
	verbExtend    = "extend"    // -> sandboxes: the one, with its new deadline
	verbUsage     = "usage"     // -> usage
	verbExec      = "exec"      // frames
)

// request is the first line of stdin, in this order. Which fields there are depends on the verb.
type request struct {
	Contract int    `json:"contract"`
	Verb     string `json:"verb"`
	Binding  string `json:"binding"`
	Account  string `json:"account"`
	StateDir string `json:"state_dir"` // for the program alone; it need not exist yet

	ID        extensions.ID     `json:"id,omitempty"`         // all but status
	Ref       string            `json:"ref,omitempty"`        // as the program called it; not of provision and find
	Sandboxes *[]pointer        `json:"sandboxes,omitempty"`  // status; absent = all of the account
	Argv      []string          `json:"argv,omitempty"`       // exec
	Deadline  *time.Time        `json:"deadline,omitempty"`   // provision, extend
	CreatedAt *time.Time        `json:"created_at,omitempty"` // provision, and all that follows here
	Labels    map[string]string `json:"labels,omitempty"`
	Name      string            `json:"name,omitempty"`
	Region    string            `json:"region,omitempty"`
	Env       map[string]string `json:"env,omitempty"`     // of every command inside
	Secrets   map[string]string `json:"secrets,omitempty"` // of every command inside, too

	Token    string           `json:"token,omitempty"`    // every verb, like those above id
	Settings any              `json:"settings,omitempty"` // every verb
	Spec     *extensions.Spec `json:"spec,omitempty"`     // provision
}

// pointer is one sandbox that is asked for.
type pointer struct {
	ID  extensions.ID `json:"id"`
	Ref string        `json:"ref"`
}

// answer is the one JSON object on stdout: an error, or exactly what the verb gives.
type answer struct {
	Contract  int        `json:"contract"`
	Error     *refusal   `json:"error"`
	Sandboxes *[]sandbox `json:"sandboxes"`
	Report    *report    `json:"report"`
	Usage     *usage     `json:"usage"`
}

// refusal is a failure that the program understood.
type refusal struct {
	Kind       extensions.Kind `json:"kind"`
	Message    string          `json:"message"`
	Remedy     string          `json:"remedy"`
	RetryAfter float64         `json:"retry_after_seconds"`
}

// sandbox is what the program says of one.
type sandbox struct {
	Ref       string            `json:"ref"`
	Labels    map[string]string `json:"labels"` // those it got, unchanged
	Phase     extensions.Phase  `json:"phase"`
	Workdir   string            `json:"workdir"` // where commands begin, absolute; never another one
	Reason    string            `json:"reason"`
	StartedAt time.Time         `json:"started_at"`
	EndedAt   time.Time         `json:"ended_at"`
	Deadline  time.Time         `json:"deadline"` // which the place enforces
	CPU       *extensions.Milli `json:"cpu_milli"`
	MemoryMB  *int64            `json:"memory_mb"`
	DiskMB    *int64            `json:"disk_mb"`
}

// report is the result of a teardown.
type report struct {
	AlreadyGone bool      `json:"already_gone"`
	Removed     []string  `json:"removed"`
	Residue     []string  `json:"residue"`
	StartedAt   time.Time `json:"started_at"`
	EndedAt     time.Time `json:"ended_at"`
	Usage       *usage    `json:"usage"`
}

// usage is the place's own measure.
type usage struct {
	StartedAt       time.Time `json:"started_at"`
	EndedAt         time.Time `json:"ended_at"`
	RunningSeconds  float64   `json:"running_seconds"`
	CPUMillis       *int64    `json:"cpu_millis"`
	MemoryMiBMillis *int64    `json:"memory_mib_millis"`
	EgressBytes     *int64    `json:"egress_bytes"`
}

// Frames of exec: those of stdin follow the request's line.
const (
	frameInput    = 'i' // to the program: the command's input
	frameInputEnd = 'e' // to the program: its end
	frameOutput   = 'o' // from it: the command's stdout
	frameErrors   = 'r' // from it: the command's stderr
	frameResult   = 'x' // from it: ended, as JSON; the last one
)

// ended is the result of exec.
type ended struct {
	Exit  *int     `json:"exit"` // 128+n when ended by signal n
	Error *refusal `json:"error"`
}

// maxAnswer bounds the answer to a verb in bytes, maxWords what is kept of stderr.
const (
	maxAnswer = 4 << 20
	maxWords  = 8 << 10
)

// decode reads one JSON object and nothing more, without members that are not known.
func decode(text []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("something follows the object")
	}
	return nil
}

func (u *usage) measured() *extensions.Usage {
	if u == nil {
		return nil
	}
	return &extensions.Usage{StartedAt: u.StartedAt, EndedAt: u.EndedAt, Running: time.Duration(u.RunningSeconds * float64(time.Second)),
		CPUMillis: u.CPUMillis, MemoryMiBMillis: u.MemoryMiBMillis, EgressBytes: u.EgressBytes}
}
