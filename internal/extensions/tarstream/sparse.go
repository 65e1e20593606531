package tarstream

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// extent is a run of data in a file. Between extents lie holes, which read as zeros and take no space.
type extent struct{ at, n int64 }

func whole(size int64) []extent { return []extent{{0, size}} }

func sum(data []extent) int64 {
	var n int64
	for _, x := range data {
		n += x.n
	}
	return n
}

// maxExtents keeps a file's map within the 1 MiB that readers accept of one header.
const maxExtents = 24_000

// fewer merges extents across the smallest holes until at most limit are left.
func fewer(data []extent, limit int) []extent {
	if len(data) <= limit {
		return data
	}
	gaps := make([]int64, 0, len(data)-1)
	for i, x := range data[1:] {
		gaps = append(gaps, x.at-data[i].at-data[i].n)
	}
	sorted := slices.Sorted(slices.Values(gaps))
	fill, out := sorted[len(data)-limit-1], data[:1:1]
	for i, x := range data[1:] {
		if last := &out[len(out)-1]; gaps[i] <= fill {
			last.n = x.at + x.n - last.at
		} else {
			out = append(out, x)
		}
	}
	return out
}

// Keys of GNU tar's sparse format 0.1: the map is in the header and the body is data alone, so readers need
// not expand the holes.
const (
	sparsePrefix = "GNU.sparse."
	sparseMap    = sparsePrefix + "map"
)

func sparseRecords(name string, size int64, data []extent) []byte {
	var m strings.Builder
	for _, x := range append(slices.Clip(data), extent{size, 0}) {
		if m.Len() > 0 {
			m.WriteByte(',')
		}
		m.WriteString(strconv.FormatInt(x.at, 10) + "," + strconv.FormatInt(x.n, 10))
	}
	var b []byte
	for _, kv := range [][2]string{{"size", strconv.FormatInt(size, 10)}, {"numblocks", strconv.Itoa(len(data) + 1)}, {"name", name},
		{"map", m.String()}} {
		b = append(b, record(sparsePrefix+kv[0], kv[1])...)
	}
	return b
}

// record returns one line of a PAX header, which starts with its own length.
func record(key, value string) string {
	rest := " " + key + "=" + value + "\n"
	n := len(rest) + 1
	for len(strconv.Itoa(n))+len(rest) != n {
		n = len(strconv.Itoa(n)) + len(rest)
	}
	return strconv.Itoa(n) + rest
}

// sparseHeader returns the blocks before a sparse file's data. archive/tar reads such headers but cannot
// write them.
func sparseHeader(h tar.Header, data []extent) ([]byte, error) {
	records := sparseRecords(h.Name, h.Size, data)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "PaxHeaders.0/file", Size: int64(len(records)), Mode: 0o644,
		Format: tar.FormatUSTAR}); err != nil {
		return nil, err
	}
	if _, err := w.Write(records); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	at := b.Len()
	h.Name, h.Size, h.Format = "GNUSparseFile.0/file", sum(data), tar.FormatGNU // GNU's format holds any size
	if err := w.WriteHeader(&h); err != nil {
		return nil, err
	}
	b.Bytes()[156] = tar.TypeXHeader
	copy(b.Bytes()[at+257:], "ustar\x0000") // a header after a PAX header uses PAX's format
	for _, block := range [][]byte{b.Bytes()[:512], b.Bytes()[at : at+512]} {
		copy(block[148:], "        ")
		n := int64(0)
		for _, c := range block {
			n += int64(c)
		}
		copy(block[148:], fmt.Sprintf("%06o\x00 ", n))
	}
	return b.Bytes(), nil
}

func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, sparsePrefix) {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

// extentsOf reads the map of an entry in the format above. The stream holds the data without the holes.
func extentsOf(h *tar.Header) ([]extent, bool) {
	text, ok := h.PAXRecords[sparseMap]
	if !ok || h.Typeflag != tar.TypeReg {
		return nil, false
	}
	data, end := []extent{}, int64(0)
	for rest := text + ","; rest != ""; {
		var x extent
		for _, n := range []*int64{&x.at, &x.n} {
			var word string
			word, rest, ok = strings.Cut(rest, ",")
			v, err := strconv.ParseInt(word, 10, 64)
			if !ok || err != nil || v < 0 {
				return nil, false
			}
			*n = v
		}
		if x.at < end || x.n > math.MaxInt64-x.at || x.at+x.n > h.Size {
			return nil, false
		}
		if end = x.at + x.n; x.n > 0 {
			data = append(data, x)
		}
	}
	return data, true
}

// sink receives a file's content in order.
type sink interface {
	io.Writer
	hole(n int64) error
}

// pour passes the content in r to to. r holds only the data, extent after extent.
func pour(to sink, r io.Reader, size int64, data []extent) error {
	at := int64(0)
	for _, x := range append(slices.Clip(data), extent{size, 0}) {
		if x.at > at {
			if err := to.hole(x.at - at); err != nil {
				return err
			}
		}
		if n, err := io.CopyN(to, r, x.n); err != nil {
			return cmp.Or(notEOF(err), short(n, x.n))
		}
		at = x.at + x.n
	}
	return nil
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func short(n, want int64) error {
	if n < want {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// both passes content to two sinks.
type both [2]sink

func (b both) Write(p []byte) (int, error) {
	if n, err := b[0].Write(p); err != nil {
		return n, err
	}
	return b[1].Write(p)
}

func (b both) hole(n int64) error { return cmp.Or(b[0].hole(n), b[1].hole(n)) }

// intoFile writes to an empty file and leaves holes out; end sets its size.
type intoFile struct{ *os.File }

func (f intoFile) hole(n int64) error {
	_, err := f.Seek(n, io.SeekCurrent)
	return err
}

func (f intoFile) end(size int64) error {
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil || at == size {
		return err
	}
	return f.Truncate(size)
}
