package tarbox

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

// taking writes a download's stream from the archives that a container sent. The container may be hostile:
// names, types and links are checked, and of its headers only name, type, mode, time and target pass.
type taking struct {
	ctx     context.Context
	to      *writing
	out     *tarstream.Relay
	entries int
	lacks   extensions.Incomplete
	left    map[string]bool // lacks.Paths
	ended   bool            // an archive was complete
	// broken says that the fault lies in the archive or in writing it on, whatever happened to the script.
	broken bool
	// holed says that the archive ended at an entry whose header is too long to read, as for a map of very
	// many holes.
	holed bool
	seen  map[string]member
}

// member is an entry that was passed on; kind 0 stands for a folder that is only implied. target is a link's.
type member struct {
	kind   byte
	target string
}

// maxTaken bounds one download by the memory its names take; maxNamed bounds the list of what it lacks.
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

// again prepares for another archive of the same content and skips what arrived complete.
func (t *taking) again() {
	t.entries, t.ended, t.broken, t.holed = 0, false, false, false
}

// lack notes what cannot be transferred, with everything below it.
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

// incomplete reports what the stream lacks, if anything.
func (t *taking) incomplete() error {
	if len(t.lacks.Paths) == 0 && !t.lacks.More {
		return nil
	}
	return extensions.Errorf(extensions.KindInvalid, "the rest arrived, but %w", &t.lacks)
}

func (t *taking) close() error { return t.out.Close() }

// read takes archives, one after another, to the end of the stream.
func (t *taking) read(in io.Reader, copied func() bool) error {
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
					return t.refuse("is truncated")
				}
				t.ended = true
				break
			}
			if err != nil {
				return t.unread(err)
			}
			if head {
				strip = top(h, copied)
			}
			if err := t.entry(h, tr, strip); err != nil {
				return err
			}
		}
	}
}

// top returns the folder that docker cp puts everything into, "" for none.
func top(h *tar.Header, copied func() bool) string {
	if copied() && h.Typeflag == tar.TypeDir {
		return strings.Trim(h.Name, "/") + "/"
	}
	return ""
}

// skipZeros skips padding; false at the end.
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
		return t.refuse("has too many entries")
	}
	name := strings.TrimPrefix(h.Name, strip)
	if name == "" && strip != "" {
		return nil
	}
	at, why := cleanPath(name)
	if why != "" {
		return t.refuse("has an entry " + tarstream.Quote(name) + " that " + why)
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
			return t.refuse("has a link " + tarstream.Quote(name) + " without a target")
		}
		out.Linkname, out.Mode = h.Linkname, 0o777
	case tar.TypeLink:
		first, _ := cleanPath(strings.TrimPrefix(h.Linkname, strip))
		if why = tooFar(first); why != "" {
			t.lack(at, "is another name of the entry that "+why)
			return nil
		}
		switch its := t.seen[first]; its.kind {
		case tar.TypeReg:
			out.Linkname = first
		case tar.TypeSymlink:
			out.Typeflag, out.Linkname, out.Mode = its.kind, its.target, 0o777
		default: // of a pipe or socket, which was left out
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

// writing remembers whether the writer failed.
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
	return extensions.Errorf(extensions.KindUnavailable, "the archive that the sandbox sent %s", why).
		WithRemedy("check the sandbox's tar; try again if files were changing")
}

// unread returns the error for a container's archive that cannot be read.
func (t *taking) unread(err error) error {
	if t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	t.holed = errors.Is(err, tar.ErrFieldTooLong)
	return t.refuse("cannot be read: " + extensions.Clean(err.Error(), 200))
}

// unwritten returns the error for a failure of the caller's own writer.
func (t *taking) unwritten(err error) error {
	t.broken = true
	return extensions.Errorf(extensions.KindInterrupted, "the download could not be written: %w", err).WithRemedy("check its destination")
}
