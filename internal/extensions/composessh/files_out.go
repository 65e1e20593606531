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
	to      *writing
	out     *tarstream.Relay
	service string
	entries int
	lacks   extensions.Incomplete
	left    map[string]bool // lacks.Paths
	ended   bool            // an archive came to its end
	// broken: the fault is in the archive or in writing it on, whatever became
	// of the script.
	broken bool
	// holed: the archive ended at an entry whose header is too long to be read,
	// which is what a map of very many holes makes it.
	holed bool
	seen  map[string]member
}

// member is an entry that was passed on; kind 0 stands for a folder that is only
// implied. target is a link's.
type member struct {
	kind   byte
	target string
}

// maxTaken bounds one download, by the memory that its names take, maxNamed the
// list of what it lacks.
const (
	maxTaken = 4_000_000
	maxNamed = 1000
)

func newTaking(ctx context.Context, w io.Writer) *taking {
	to := &writing{w: w}
	return &taking{ctx: ctx, to: to, out: tarstream.NewRelay(to), seen: map[string]member{}, left: map[string]bool{}}
}

func memberOf(h *tar.Header) member {
	if h.Typeflag == tar.TypeSymlink {
		return member{h.Typeflag, h.Linkname}
	}
	return member{kind: h.Typeflag}
}

// again prepares for one more archive of the same. What came whole is passed over
// in it.
func (t *taking) again() {
	t.entries, t.ended, t.broken, t.holed = 0, false, false, false
}

// lack notes what cannot travel, and with it all below it.
func (t *taking) lack(at, why string) {
	if parts := strings.SplitN(at, "/", tarstream.DefaultMaxDepth+2); len(parts) > tarstream.DefaultMaxDepth+1 {
		at = strings.Join(parts[:tarstream.DefaultMaxDepth+1], "/")
	}
	switch {
	case t.left[at]:
	case len(t.left) == maxNamed:
		t.lacks.More = true
	default:
		t.left[at] = true
		t.lacks.Paths = append(t.lacks.Paths, at)
		if t.lacks.Why == "" {
			t.lacks.Why = tarstream.Quote(at) + " " + why
		}
	}
}

// incomplete tells what the stream lacks, if anything.
func (t *taking) incomplete() error {
	if len(t.lacks.Paths) == 0 && !t.lacks.More {
		return nil
	}
	return extensions.Errorf(extensions.KindInvalid, "the rest arrived, but %w", &t.lacks)
}

func (t *taking) close() error { return t.out.Close() }

// read takes archives, one after the other, to the stream's end.
func (t *taking) read(in io.Reader, heard *hearing) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	strip := ""
	for start := true; ; start = false {
		if !skipZeros(buffered) {
			return nil
		}
		counted := &tally{ctx: t.ctx, r: buffered}
		tr := tarstream.NewReader(counted)
		for head := start; ; head = false {
			before := counted.n
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				if counted.n-before < 1024 {
					return t.refuse("is cut off")
				}
				t.ended = true
				break
			}
			if err != nil {
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

func (t *taking) entry(h *tar.Header, from *tarstream.Reader, strip string) error {
	if t.entries++; t.entries > maxTaken {
		return t.refuse("holds too many entries")
	}
	name := strings.TrimPrefix(h.Name, strip)
	if name == "" && strip != "" {
		return nil
	}
	at, why := cleanPath(name)
	if why != "" {
		return t.refuse("holds an entry " + tarstream.Quote(name) + " that " + why)
	}
	if why = tooFar(at); why != "" {
		t.lack(at, why)
		return nil
	}
	if _, twice := t.seen[at]; at == "." || twice {
		return nil
	}
	out := tar.Header{Typeflag: h.Typeflag, Name: at, Mode: h.Mode & 0o777, ModTime: h.ModTime}
	switch h.Typeflag {
	case tar.TypeDir:
		out.Name += "/"
	case tar.TypeReg:
	case tar.TypeSymlink:
		if !fitTarget(h.Linkname) {
			return t.refuse("holds a link " + tarstream.Quote(name) + " without a target")
		}
		out.Linkname, out.Mode = h.Linkname, 0o777
	case tar.TypeLink:
		first, _ := cleanPath(strings.TrimPrefix(h.Linkname, strip))
		if why = tooFar(first); why != "" {
			t.lack(at, "is one more name of what "+why)
			return nil
		}
		switch its := t.seen[first]; its.kind {
		case tar.TypeReg:
			out.Linkname = first
		case tar.TypeSymlink:
			out.Typeflag, out.Linkname, out.Mode = its.kind, its.target, 0o777
		default: // of a pipe or a socket, which was left out
			return nil
		}
	default: // sockets, devices, pipes
		return nil
	}
	t.seen[at] = memberOf(&out)
	err := t.out.Put(out, from)
	if err != nil && t.to.err != nil {
		return t.unwritten(err)
	}
	if err != nil {
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
	t.holed = errors.Is(err, tar.ErrFieldTooLong)
	return t.refuse("cannot be read: " + extensions.Clean(err.Error(), 200))
}

// unwritten is a failure of the caller's own writer.
func (t *taking) unwritten(err error) error {
	t.broken = true
	return extensions.Errorf(extensions.KindInterrupted, "the download could not be written: %w", err).WithRemedy("check where it is written to")
}
