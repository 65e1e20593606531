// Package frames is a stream of frames: a type byte, a length of four bytes (big-endian) and a payload.
package frames

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// MaxPayload bounds a frame, and ChunkSize is the size of data frames, in bytes.
const (
	MaxPayload = 4 << 20
	ChunkSize  = 32 << 10
)

// Writer writes frames. It is safe for concurrent use.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

// NewWriter returns a Writer on w.
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

// Stream returns an io.Writer that sends its input as frames of the kind.
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

// NewReader returns a Reader on r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Next returns the next frame. The payload is valid until the next call.
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
