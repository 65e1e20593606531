// Package lease reads and writes the two small files that a sandbox's init holds open on the host: the lease,
// which says when the sandbox must end, and the tombstone, where the init records when it did.
package lease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"time"
)

const (
	digits = 20
	length = digits + 1 + 8 + 1
)

// ErrTorn is returned for a lease read while it was being written.
var ErrTorn = errors.New("the lease is torn or empty")

// Write puts deadline into the file in place, in one write, because the init holds the file open. The
// resolution is a microsecond.
func Write(w io.WriterAt, deadline time.Time) error {
	n := fmt.Sprintf("%0*d", digits, deadline.UnixMicro())
	_, err := w.WriteAt(fmt.Appendf(nil, "%s %08x\n", n, crc32.ChecksumIEEE([]byte(n))), 0)
	return err
}

// Read returns the deadline, or ErrTorn.
func Read(r io.ReaderAt) (time.Time, error) {
	var b [length]byte
	if n, err := r.ReadAt(b[:], 0); n < length {
		if err == nil || errors.Is(err, io.EOF) {
			err = ErrTorn
		}
		return time.Time{}, err
	}
	n, sum := string(b[:digits]), string(b[digits+1:length-1])
	micros, err := strconv.ParseInt(n, 10, 64)
	if err != nil || fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(n))) != sum {
		return time.Time{}, ErrTorn
	}
	return time.UnixMicro(micros).UTC(), nil
}

// Reasons of an end.
const (
	ReasonExpired = "expired"
	ReasonRemoved = "removed" // the lease's file was removed
	ReasonExited  = "exited"  // its entrypoint did
	ReasonIdle    = "idle"    // nobody used it
)

// Mode says whether the sandbox is paused, and since when; zero if it never was.
type Mode struct {
	Paused bool      `json:"paused,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Rested is how long earlier pauses were.
	Rested time.Duration `json:"rested,omitempty"`
}

// Tombstone is what the init records when its mode changes or somebody begins or ends to use it, and when it ends by itself.
type Tombstone struct {
	EndedAt time.Time `json:"ended_at,omitzero"`
	Reason  string    `json:"reason,omitempty"`
	Exit    int       `json:"exit,omitempty"` // ReasonExited's code
	Mode    Mode      `json:"mode,omitzero"`
	// IdleSince is since when nobody uses it, if that can end it; zero while somebody does.
	IdleSince time.Time `json:"idle_since,omitzero"`
}

// WriteTombstone writes e at the start of the file, before what was longer.
func WriteTombstone(w io.WriterAt, e Tombstone) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = w.WriteAt(append(b, '\n'), 0)
	return err
}

// ParseTombstone reads what WriteTombstone wrote last; ended is false for a sandbox that has not ended.
func ParseTombstone(b []byte) (e Tombstone, ended bool) {
	err := json.NewDecoder(bytes.NewReader(b)).Decode(&e)
	return e, err == nil && !e.EndedAt.IsZero()
}
