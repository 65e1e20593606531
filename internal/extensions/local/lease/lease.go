// Package lease reads and writes the two small files that a sandbox's init
// holds open on the host: the lease, which says when it must end, and the
// tombstone, in which it writes when it did.
package lease

import (
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

// ErrTorn is returned for a lease that was read while it was written.
var ErrTorn = errors.New("the lease is torn or empty")

// Write puts deadline into the file in place, in one write, because the init
// holds the file open. Resolution is a microsecond.
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
	ReasonRemoved = "removed" // the lease's file was
)

// End is what the init writes when it ends by itself.
type End struct {
	EndedAt time.Time `json:"ended_at"`
	Reason  string    `json:"reason"`
}

// WriteEnd writes e at the start of the file.
func WriteEnd(w io.WriterAt, e End) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = w.WriteAt(append(b, '\n'), 0)
	return err
}

// ParseEnd reads what WriteEnd wrote; ok is false for an empty file.
func ParseEnd(b []byte) (e End, ok bool) {
	return e, json.Unmarshal(b, &e) == nil && !e.EndedAt.IsZero()
}
