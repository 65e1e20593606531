package composessh

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// taking writes a download's stream from the archives that a container sent.
// The container may be hostile: names, types and links are checked, nothing of
// its headers but name, type, mode, time and target gets through.
type taking struct {
	ctx     context.Context
	tw      *tar.Writer
	linked  []string // further names of files already sent
	service string
	entries int
	// broken: the fault is in the archive or in writing it on, whatever became
	// of the script.
	broken bool
	seen   map[string]bool
}

func newTaking(ctx context.Context, w io.Writer) *taking {
	return &taking{ctx: ctx, tw: tar.NewWriter(w), seen: map[string]bool{}}
}

func (t *taking) close() error { return t.tw.Close() }

// read takes archives, one after the other, to the stream's end.
func (t *taking) read(in io.Reader, heard *hearing) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	strip := ""
	for start := true; ; start = false {
		if !skipZeros(buffered) {
			return nil
		}
		counted := &tally{ctx: t.ctx, r: buffered}
		tr := tar.NewReader(counted)
		for head := start; ; head = false {
			before := counted.n
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				if counted.n-before < 1024 {
					return t.refuse("is cut off")
				}
				break
			}
			if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
				return t.unread(err)
			}
			if head {
				strip = top(h, heard)
			}
			if err := t.entry(h, tr, strip); err != nil {
				return err
			}
		}
	}
}

// top is the folder that docker cp puts everything into, "" for none.
func top(h *tar.Header, heard *hearing) string {
	if s := heard.beginning(); s.Method == "copy" && h.Typeflag == tar.TypeDir {
		return strings.Trim(h.Name, "/") + "/"
	}
	return ""
}

// skipZeros reads on to what is not padding; false at the end.
func skipZeros(r *bufio.Reader) bool {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return false
		}
		if b != 0 {
			return r.UnreadByte() == nil
		}
	}
}

func (t *taking) entry(h *tar.Header, body io.Reader, strip string) error {
	if t.entries++; t.entries > maxEntries {
		return t.refuse("holds too many entries")
	}
	name := h.Name
	if strip != "" {
		if name = strings.TrimPrefix(h.Name, strip); name == "" {
			return nil
		}
	}
	at, why := entryPath(name)
	if strings.Contains(why, "line break") { // a stream of ours cannot hold it
		return nil
	}
	if why != "" {
		return t.refuse("holds an entry " + extensions.Clean(name, 100) + " that " + why)
	}
	if at == "." || t.seen[at] {
		return nil
	}
	out := &tar.Header{Typeflag: h.Typeflag, Name: at, Mode: h.Mode & 0o777, ModTime: h.ModTime}
	switch h.Typeflag {
	case tar.TypeDir:
		out.Name += "/"
	case tar.TypeReg:
		out.Size = h.Size
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) > tarstream.MaxPathBytes || strings.ContainsAny(h.Linkname, "\x00\n\r") {
			return nil
		}
		out.Linkname, out.Mode = h.Linkname, 0o777
	case tar.TypeLink:
		t.linked = append(t.linked, at)
		return nil
	default: // sockets, devices, pipes
		return nil
	}
	t.seen[at] = true
	return t.write(out, body)
}

func (t *taking) write(out *tar.Header, body io.Reader) error {
	if err := t.tw.WriteHeader(out); err != nil {
		return t.unwritten(err)
	}
	if out.Typeflag != tar.TypeReg {
		return nil
	}
	to := &writing{w: t.tw}
	if _, err := io.Copy(to, body); err != nil {
		if to.err != nil {
			return t.unwritten(err)
		}
		return t.unread(err)
	}
	return nil
}

// writing remembers whether it was the writer that failed.
type writing struct {
	w   io.Writer
	err error
}

func (w *writing) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.err = err
	return n, err
}

func (t *taking) refuse(why string) error {
	t.broken = true
	return extensions.Errorf(extensions.KindUnavailable, "the archive that the container sent %s", why).
		WithRemedy("look at the container's tar; try again if it was being changed")
}

// unread is a failure to read the container's archive.
func (t *taking) unread(err error) error {
	if t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	return t.refuse("cannot be read: " + extensions.Clean(err.Error(), 200))
}

// unwritten is a failure of the caller's own writer.
func (t *taking) unwritten(err error) error {
	t.broken = true
	return extensions.Errorf(extensions.KindInterrupted, "the download could not be written: %w", err).WithRemedy("check where it is written to")
}
