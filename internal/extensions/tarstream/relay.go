package tarstream

import (
	"archive/tar"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Relay writes the entries of a Reader under other headers.
type Relay struct {
	w    io.Writer
	tw   *tar.Writer
	room int64 // zeros that holes may still become; -1 = they stay holes
}

// NewRelay returns a Relay that keeps holes.
func NewRelay(w io.Writer) *Relay { return &Relay{w: w, tw: tar.NewWriter(w), room: -1} }

// NewDenseRelay is for a receiver without sparse files: holes become zeros, at most limit bytes in all. More
// is KindInvalid.
func NewDenseRelay(w io.Writer, limit int64) *Relay {
	return &Relay{w: w, tw: tar.NewWriter(w), room: limit}
}

// Put writes h and, for a regular file, the content of from's current entry, which also sets h.Size. The
// format is GNU's, for names of any bytes.
func (r *Relay) Put(h tar.Header, from *Reader) error {
	h.Format, h.PAXRecords = tar.FormatGNU, nil
	if h.Typeflag != tar.TypeReg {
		h.Size = 0
		return r.tw.WriteHeader(&h)
	}
	h.Size = from.size
	if from.data == nil {
		if err := r.tw.WriteHeader(&h); err != nil {
			return err
		}
		_, err := io.Copy(r.tw, from.tr)
		return err
	}
	if r.room < 0 {
		return r.sparse(h, from)
	}
	holes := h.Size - sum(from.data)
	if holes > r.room {
		return extensions.Errorf(extensions.KindInvalid, "%s has %d MiB of holes, which the target cannot store as holes", Quote(h.Name),
			holes>>20).
			WithRemedy("make it smaller, or exclude it with an ignore file")
	}
	r.room -= holes
	if err := r.tw.WriteHeader(&h); err != nil {
		return err
	}
	return from.content(filled{r.tw})
}

func (r *Relay) sparse(h tar.Header, from *Reader) error {
	head, err := sparseHeader(h, from.data)
	if err == nil {
		err = r.tw.Flush()
	}
	if err == nil {
		_, err = r.w.Write(head)
	}
	if err == nil {
		err = from.content(dataOnly{r.w})
	}
	if err == nil {
		_, err = io.CopyN(r.w, endlessZeros{}, -sum(from.data)&511)
	}
	return err
}

// Flush ends the entry.
func (r *Relay) Flush() error { return r.tw.Flush() }

// Close ends the stream.
func (r *Relay) Close() error { return r.tw.Close() }

// filled writes holes as zeros; dataOnly omits them.
type (
	filled   struct{ io.Writer }
	dataOnly struct{ io.Writer }
)

func (f filled) hole(n int64) error {
	_, err := io.CopyN(f, endlessZeros{}, n)
	return err
}

func (dataOnly) hole(int64) error { return nil }
