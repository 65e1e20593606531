package tarstream

import (
	"archive/tar"
	"errors"
	"io"
)

// Reader reads entries as archive/tar does, with the holes of sparse files
// known instead of expanded.
type Reader struct {
	raw  *counted
	tr   *tar.Reader
	size int64
	data []extent // of the entry that is read; nil = it is not sparse
	rest int64    // bytes of a sparse entry that are still in raw, padding included
}

// counted counts what is read. archive/tar never reads ahead of what it was
// asked for, so n is where the next byte of the entry lies.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// NewReader begins a stream. Its names and links are not checked: see Unpack.
func NewReader(r io.Reader) *Reader {
	raw := &counted{r: r}
	return &Reader{raw: raw, tr: tar.NewReader(raw)}
}

// Next moves to the next entry; its size is that of the file with its holes.
// A sparse file whose map is not in its header is ErrSparse.
func (r *Reader) Next() (*tar.Header, error) {
	if _, err := io.CopyN(io.Discard, r.raw, r.rest); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	r.data, r.rest = nil, 0
	h, err := r.tr.Next()
	if errors.Is(err, tar.ErrInsecurePath) {
		err = nil // who takes the entry judges its name
	}
	if err != nil {
		return nil, err
	}
	r.size = h.Size
	if !isSparse(h) {
		return h, nil
	}
	var ok bool
	if r.data, ok = extentsOf(h); !ok {
		return nil, ErrSparse
	}
	// archive/tar would fill the holes byte by byte: what is left of this entry
	// is read past it.
	n := sum(r.data)
	r.rest = n + -n&511
	r.tr = tar.NewReader(r.raw)
	return h, nil
}

// ErrSparse refuses an entry.
var ErrSparse = errors.New("a sparse file comes in a form that is not read here")

// Offset is how much of the stream was read.
func (r *Reader) Offset() int64 { return r.raw.n }

// extents are those of the entry's file.
func (r *Reader) extents() []extent {
	if r.data == nil {
		return whole(r.size)
	}
	return r.data
}

// content gives the entry's content to to.
func (r *Reader) content(to sink) error {
	if r.data == nil {
		return pour(to, r.tr, r.size, whole(r.size))
	}
	data := &io.LimitedReader{R: r.raw, N: sum(r.data)}
	before := data.N
	err := pour(to, data, r.size, r.data)
	r.rest -= before - data.N
	return err
}

// WriteTo writes the current entry's content, holes as zeros: ask for its size first.
func (r *Reader) WriteTo(w io.Writer) (int64, error) { return r.size, r.content(filled{w}) }

// Digest reads the current entry's content for its Entry.SHA256.
func (r *Reader) Digest() (string, error) {
	h := newContentHash()
	err := r.content(h)
	return h.digest(), err
}
