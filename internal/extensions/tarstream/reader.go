package tarstream

import (
	"archive/tar"
	"errors"
	"io"
)

// Reader reads entries as archive/tar does, but reports the holes of sparse files instead of expanding them.
type Reader struct {
	raw  *counted
	tr   *tar.Reader
	size int64
	data []extent // of the current entry; nil = not sparse
	rest int64    // bytes of a sparse entry still in raw, padding included
}

// counted counts the bytes read. archive/tar never reads ahead, so n is the offset of the entry's next byte.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// NewReader starts a stream. It does not check names and links: see Unpack.
func NewReader(r io.Reader) *Reader {
	raw := &counted{r: r}
	return &Reader{raw: raw, tr: tar.NewReader(raw)}
}

// Next moves to the next entry, whose size is that of the file with its holes. A sparse file without its map
// in the header is ErrSparse.
func (r *Reader) Next() (*tar.Header, error) {
	if _, err := io.CopyN(io.Discard, r.raw, r.rest); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	r.data, r.rest = nil, 0
	h, err := r.tr.Next()
	if errors.Is(err, tar.ErrInsecurePath) {
		err = nil // the caller judges the name
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
	// archive/tar would fill the holes byte by byte, so read past the rest of this entry.
	n := sum(r.data)
	r.rest = n + -n&511
	r.tr = tar.NewReader(r.raw)
	return h, nil
}

// ErrSparse is the error for a sparse file in an unsupported format.
var ErrSparse = errors.New("a sparse file has an unsupported format")

// Offset returns how many bytes of the stream were read.
func (r *Reader) Offset() int64 { return r.raw.n }

// extents returns the data extents of the entry's file.
func (r *Reader) extents() []extent {
	if r.data == nil {
		return whole(r.size)
	}
	return r.data
}

// content passes the entry's content to to.
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

// WriteTo writes the current entry's content with holes as zeros: check its size first.
func (r *Reader) WriteTo(w io.Writer) (int64, error) { return r.size, r.content(filled{w}) }

// Digest reads the current entry's content and returns its Entry.SHA256.
func (r *Reader) Digest() (string, error) {
	h := newContentHash()
	err := r.content(h)
	return h.digest(), err
}
