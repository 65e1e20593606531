// Package wire is what sandboxer and a sandbox's init say to each other over
// the init's socket: frames of a type byte, a length and a payload.
//
// A connection carries one request. The client sends FrameRequest, then input
// frames; the init answers with output frames and ends with FrameResult. A
// client that hangs up ends its command. Input is bounded by credit: at most
// Credit unacknowledged FrameInput are under way, so that hang-ups and
// resizes are seen even while a command does not read its input.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Frame types.
const (
	FrameRequest  = 'R' // client: Request as JSON
	FrameInput    = 'i' // client: input bytes
	FrameInputEnd = 'e' // client: end of input
	FrameResize   = 'w' // client: rows, cols as two big-endian uint16
	FrameAck      = 'a' // init: one FrameInput was consumed
	FrameOutput   = 'o' // init: stdout, or the data of a download
	FrameErrors   = 'r' // init: stderr
	FrameResult   = 'x' // init: Result as JSON, the last frame
)

// MaxPayload bounds a frame, in bytes.
const MaxPayload = 4 << 20

// ChunkSize is the size of data frames, in bytes; Credit how many input frames
// may be unacknowledged.
const (
	ChunkSize = 32 << 10
	Credit    = 8
)

// Operations.
const (
	OpExec     = "exec"
	OpUpload   = "upload"
	OpSeed     = "seed" // upload into the workspace, also a read-only one
	OpDownload = "download"
	OpSnapshot = "snapshot" // download of the workspace, with everything inside stopped
	OpLogs     = "logs"
	OpCheck    = "check" // one readiness try over HTTP or TCP
	OpPing     = "ping"
)

// Request is what a connection asks for; which fields count depends on Op.
type Request struct {
	Op        string   `json:"op"`
	Argv      [][]byte `json:"argv,omitempty"` // bytes, since arguments need not be UTF-8
	Dir       []byte   `json:"dir,omitempty"`
	Env       [][]byte `json:"env,omitempty"` // KEY=value, after the sandbox's own
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
	CodeInternal = "internal"
)

// Result ends a connection.
type Result struct {
	Exit     int    `json:"exit"`
	Code     string `json:"code,omitempty"` // "" = done
	Message  string `json:"message,omitempty"`
	Duration int64  `json:"duration_ns,omitempty"`
	// Left are the paths that a download lacks; LeftMore says there are more.
	Left     [][]byte `json:"left,omitempty"`
	LeftMore bool     `json:"left_more,omitempty"`
}

// Writer writes frames; safe for several goroutines.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

// NewWriter makes a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Frame writes one frame. A payload above MaxPayload is an error.
func (w *Writer) Frame(kind byte, payload []byte) error {
	if len(payload) > MaxPayload {
		return fmt.Errorf("a frame of %d bytes is too large", len(payload))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf[:0], kind)
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(len(payload)))
	w.buf = append(w.buf, payload...)
	_, err := w.w.Write(w.buf)
	return err
}

// JSON writes v as one frame.
func (w *Writer) JSON(kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.Frame(kind, b)
}

// Stream returns an io.Writer that sends what it gets as frames of the kind.
func (w *Writer) Stream(kind byte) io.Writer { return streamWriter{w, kind} }

type streamWriter struct {
	w    *Writer
	kind byte
}

func (s streamWriter) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		end := min(n+ChunkSize, len(p))
		if err := s.w.Frame(s.kind, p[n:end]); err != nil {
			return n, err
		}
		n = end
	}
	return n, nil
}

// Reader reads frames.
type Reader struct {
	r   io.Reader
	buf []byte
}

// NewReader makes a Reader on r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Next returns the next frame; the payload is valid until the following call.
func (r *Reader) Next() (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > MaxPayload {
		return 0, nil, fmt.Errorf("a frame of %d bytes is too large", n)
	}
	if cap(r.buf) < int(n) {
		r.buf = make([]byte, n)
	}
	b := r.buf[:n]
	if _, err := io.ReadFull(r.r, b); err != nil {
		return 0, nil, err
	}
	return head[0], b, nil
}
