package tarbox

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// Form says how to change an archive on its way in.
type Form struct {
	Prefix   string // precedes all names, without slashes around it; "" = none
	UID, GID int    // the owner of all entries, for what keeps owners as they are
	Made     bool   // the archive begins with the folder of Prefix
}

// refill reads a tar stream, checks each entry completely and writes it anew. The first refused entry ends it
// with KindInvalid; the entries before it are complete.
func refill(ctx context.Context, in io.Reader, out io.Writer, f Form) error {
	counted := &tally{ctx: ctx, r: in}
	r := &refilling{ctx: ctx, form: f, counted: counted, in: tarstream.NewReader(counted), out: tarstream.NewDenseRelay(out, MaxFilled),
		seen: map[string]member{}}
	err := r.run()
	if r.inFile {
		return err // the archiver too refuses an archive cut inside a file
	}
	if closed := r.out.Close(); err == nil {
		err = closed
	}
	return err
}

type refilling struct {
	ctx     context.Context
	form    Form
	counted *tally
	in      *tarstream.Reader
	out     *tarstream.Relay
	seen    map[string]member
	inFile  bool
}

// maxEntries bounds the entries of one upload.
const maxEntries = 1_000_000

// MaxFilled bounds the zeros that replace holes in one transfer either way, in bytes, since not every archiver
// knows sparse files.
const MaxFilled = tarstream.DefaultMaxBytes

func (r *refilling) run() error {
	if r.form.Made && r.form.Prefix != "" {
		if err := r.put(&tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}, "."); err != nil {
			return err
		}
	}
	for n := 0; ; n++ {
		before := r.counted.n
		h, err := r.in.Next()
		if errors.Is(err, io.EOF) {
			if r.counted.n-before < 1024 {
				return r.broken(io.ErrUnexpectedEOF)
			}
			return r.drained()
		}
		if err != nil {
			return r.broken(err)
		}
		if n == maxEntries {
			return extensions.Errorf(extensions.KindInvalid, "the archive has more than %d entries", maxEntries)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		at, err := r.check(h)
		if err != nil {
			return err
		}
		if at == "." {
			continue
		}
		if err := r.put(h, at); err != nil {
			return err
		}
	}
}

// put writes one entry that passed the checks.
func (r *refilling) put(h *tar.Header, at string) error {
	out := tar.Header{Typeflag: h.Typeflag, Name: r.name(at), Linkname: h.Linkname, Mode: h.Mode & 0o777,
		ModTime: h.ModTime, Uid: r.form.UID, Gid: r.form.GID}
	switch h.Typeflag {
	case tar.TypeDir:
		out.Name += "/"
	case tar.TypeLink: // checked, so it is clean
		to, _ := entryPath(h.Linkname)
		out.Linkname = r.name(to)
	}
	r.inFile = true
	if err := r.out.Put(out, r.in); err != nil {
		return r.broken(err)
	}
	r.inFile = false
	return r.out.Flush()
}

// name returns an entry's name for the receiver.
func (r *refilling) name(at string) string {
	if r.form.Prefix == "" {
		return "./" + at
	}
	return path.Join(r.form.Prefix, at)
}

// check returns an entry's clean path, "." for the folder itself.
func (r *refilling) check(h *tar.Header) (string, error) {
	refuse := func(why string) (string, error) {
		return "", extensions.Errorf(extensions.KindInvalid, "the entry %s %s", tarstream.Quote(h.Name), why)
	}
	at, why := entryPath(h.Name)
	if why == "" && !Fits(r.form.Prefix, at) {
		why = "has a name that is too long for archivers"
	}
	if why != "" {
		return refuse(why)
	}
	switch h.Typeflag {
	case tar.TypeDir, tar.TypeReg:
	case tar.TypeSymlink:
		if !fitTarget(h.Linkname) {
			return refuse("links to an invalid file name")
		}
	case tar.TypeLink:
		to, why := entryPath(h.Linkname)
		switch its := r.seen[to]; {
		case why == "" && its.kind == tar.TypeReg:
		case why == "" && its.kind == tar.TypeSymlink: // not every archiver can hard-link a link
			h.Typeflag, h.Linkname = its.kind, its.target
		default:
			return refuse("is a hard link to something that is not a file of this archive")
		}
	default:
		return refuse("is not a folder, regular file or symbolic link")
	}
	if at == "." {
		if h.Typeflag != tar.TypeDir {
			return refuse("has no name")
		}
		return at, nil
	}
	if its, ok := r.seen[at]; ok && (its.kind != 0 || h.Typeflag != tar.TypeDir) {
		return refuse("appears twice")
	}
	for up := path.Dir(at); up != "."; up = path.Dir(up) {
		its, ok := r.seen[up]
		if ok && its.kind != 0 && its.kind != tar.TypeDir {
			return refuse("is below a file or a link of the archive")
		}
		if ok {
			break
		}
		r.seen[up] = member{}
	}
	r.seen[at] = memberOf(h)
	return at, nil
}

// fitTarget reports whether a symbolic link can hold the target.
func fitTarget(to string) bool {
	return to != "" && len(to) <= tarstream.MaxPathBytes && !strings.ContainsRune(to, 0)
}

// entryPath returns the clean relative path of an entry's name, or why it cannot be transferred.
func entryPath(name string) (at, why string) {
	if at, why = cleanPath(name); why == "" {
		why = tooFar(at)
	}
	return at, why
}

// cleanPath returns the clean relative path of an entry's name, "." for the folder itself, or why no file can
// have it.
func cleanPath(name string) (at, why string) {
	switch {
	case name == "":
		return "", "has no name"
	case strings.ContainsRune(name, 0):
		return "", "has a NUL byte in its name"
	case strings.HasPrefix(name, "/"):
		return "", "has an absolute name"
	}
	parts := strings.Split(strings.TrimSuffix(name, "/"), "/")
	for len(parts) > 0 && parts[0] == "." {
		parts = parts[1:]
	}
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return "", "has a name that is not a clean relative path"
		}
	}
	if len(parts) == 0 {
		return ".", ""
	}
	return strings.Join(parts, "/"), ""
}

// tooFar says why a clean path cannot be transferred.
func tooFar(at string) string {
	if strings.Count(at, "/") >= tarstream.DefaultMaxDepth {
		return "is nested too deep"
	}
	for part := range strings.SplitSeq(at, "/") {
		if len(part) > tarstream.MaxNameBytes {
			return "has a component longer than 255 bytes in its name"
		}
	}
	return ""
}

// Fits reports whether archivers can create the clean path at below prefix.
func Fits(prefix, at string) bool {
	return len(prefix)+len(at) <= tarstream.MaxPathBytes-maxAround && tooFar(at) == ""
}

// maxAround is what an archiver may add to a name, "./" and a terminator, in bytes.
const maxAround = 3

// drained reads what follows the archive's end and accepts only zeros.
func (r *refilling) drained() error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.counted.Read(buf)
		for _, b := range buf[:n] {
			if b != 0 {
				return r.broken(tar.ErrHeader)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return r.broken(err)
		}
	}
}

// broken classifies a failure to read or write the stream itself.
func (r *refilling) broken(err error) error {
	if errors.Is(err, tarstream.ErrSparse) || errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, tar.ErrFieldTooLong) {
		return extensions.Errorf(extensions.KindInvalid, "this is not a complete tar stream: %w", err).
			WithRemedy("give a complete, uncompressed tar archive")
	}
	return err
}

// tally counts the bytes read, and stops with its context.
type tally struct {
	ctx context.Context
	r   io.Reader
	n   int64
}

func (c *tally) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
