// Package wire is the protocol between sandboxer and a sandbox's init on the init's socket: frames of a type
// byte, a length and a payload.
//
// A connection carries one request. The client sends FrameRequest, then input frames; the init answers with
// output frames and ends with FrameResult. A client that hangs up ends its command. Credit bounds the input:
// at most Credit FrameInput are unacknowledged, so that the init sees hang-ups and resizes even while a
// command does not read.
package wire

import (
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/frames"
)

// Frame types.
const (
	FrameRequest  = 'R' // client: Request as JSON
	FrameInput    = 'i' // client: input bytes
	FrameInputEnd = 'e' // client: end of input
	FrameResize   = 'w' // client: rows, cols as two big-endian uint16
	FrameAck      = 'a' // init: one FrameInput was consumed
	FrameOutput   = 'o' // init: stdout, or the data of a download
	FrameErrors   = 'r' // init: stderr, or the second stream of a copy
	FrameResult   = 'x' // init: Result as JSON, the last frame
)

// ChunkSize is the size of data frames, in bytes; Credit is how many input frames may be unacknowledged.
const (
	ChunkSize = frames.ChunkSize
	Credit    = 8
)

type (
	// Writer is that of package frames.
	Writer = frames.Writer
	// Reader is that of package frames.
	Reader = frames.Reader
)

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return frames.NewWriter(w) }

// NewReader returns a Reader on r.
func NewReader(r io.Reader) *Reader { return frames.NewReader(r) }

// Operations.
const (
	OpExec     = "exec"
	OpEnter    = "enter" // start the entrypoint, whose end is the sandbox's
	OpUpload   = "upload"
	OpSeed     = "seed" // upload into the workspace, even a read-only one
	OpDownload = "download"
	OpSnapshot = "snapshot" // download of the workspace, with everything inside stopped
	OpCopy     = "copy"     // as a snapshot, with the home as a second stream
	OpHome     = "home"     // upload into the home
	OpLogs     = "logs"
	OpCheck    = "check" // one readiness attempt over HTTP or TCP
	OpPing     = "ping"
	OpPause    = "pause"
	OpResume   = "resume"
)

// Request is what a connection asks for; Op decides which fields count.
type Request struct {
	Op        string   `json:"op"`
	Argv      [][]byte `json:"argv,omitempty"` // bytes, since arguments need not be UTF-8
	Dir       []byte   `json:"dir,omitempty"`
	Env       [][]byte `json:"env,omitempty"` // KEY=value, overriding the sandbox's own
	Stdin     bool     `json:"stdin,omitempty"`
	TTY       bool     `json:"tty,omitempty"`
	Rows      uint16   `json:"rows,omitempty"`
	Cols      uint16   `json:"cols,omitempty"`
	TimeoutMS int64    `json:"timeout_ms,omitempty"`
	Path      []byte   `json:"path,omitempty"`
	Follow    bool     `json:"follow,omitempty"`
	Tail      int      `json:"tail,omitempty"`
	URL       string   `json:"url,omitempty"`
	Address   string   `json:"address,omitempty"`
}

// Codes of a failed Result.
const (
	CodeInvalid  = "invalid"
	CodeNotFound = "not_found"
	CodeNoSpace  = "no_space"
	CodeReadOnly = "read_only"
	CodeTimeout  = "timeout"
	CodePaused   = "paused"
	CodeInternal = "internal"
)

// Result ends a connection.
type Result struct {
	Exit     int    `json:"exit"`
	Code     string `json:"code,omitempty"` // "" = done
	Message  string `json:"message,omitempty"`
	Duration int64  `json:"duration_ns,omitempty"`
	// Left are the paths missing from a download; LeftMore says there are more.
	Left     [][]byte `json:"left,omitempty"`
	LeftMore bool     `json:"left_more,omitempty"`
}
