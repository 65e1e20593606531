package composessh

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

// form is what an archive is made into on its way.
type form struct {
	prefix   string // goes before all names; "" = none
	uid, gid int
	made     bool // the folder of prefix is to be made
}

// formOf is for docker cp, which extracts below / and takes owners as they are.
func formOf(s said) form {
	return form{prefix: strings.Trim(path.Clean(s.Path), "/"), uid: s.UID, gid: s.GID, made: !s.Folder}
}

// refill reads a tar stream, checks each entry wholly and writes it anew. The
// first one that is refused ends it, with what came before whole: KindInvalid.
func refill(ctx context.Context, in io.Reader, out io.Writer, f form) error {
	counted := &tally{ctx: ctx, r: in}
	r := &refilling{ctx: ctx, form: f, counted: counted, in: tarstream.NewReader(counted), out: tarstream.NewDenseRelay(out, maxFilled), seen: map[string]member{}}
	err := r.run()
	if r.inFile {
		return err // an archive cut in a file is refused by the archiver too
	}
	if closed := r.out.Close(); err == nil {
		err = closed
	}
	return err
}

type refilling struct {
	ctx     context.Context
	form    form
	counted *tally
	in      *tarstream.Reader
	out     *tarstream.Relay
	seen    map[string]member
	inFile  bool
}

// maxEntries bounds one transfer in, maxFilled the zeros that stand for holes in
// one either way: not every archiver knows sparse files.
const (
	maxEntries = 1_000_000
	maxFilled  = tarstream.DefaultMaxBytes
)

func (r *refilling) run() error {
	if r.form.made && r.form.prefix != "" {
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
			return extensions.Errorf(extensions.KindInvalid, "the archive holds more than %d entries", maxEntries)
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

// put writes one entry that was found good.
func (r *refilling) put(h *tar.Header, at string) error {
	out := tar.Header{Typeflag: h.Typeflag, Name: r.name(at), Linkname: h.Linkname, Mode: h.Mode & 0o777,
		ModTime: h.ModTime, Uid: r.form.uid, Gid: r.form.gid}
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

// name is an entry's for the receiver.
func (r *refilling) name(at string) string {
	if r.form.prefix == "" {
		return "./" + at
	}
	return path.Join(r.form.prefix, at)
}

// check returns an entry's clean path, "." for the folder itself.
func (r *refilling) check(h *tar.Header) (string, error) {
	refuse := func(why string) (string, error) {
		return "", extensions.Errorf(extensions.KindInvalid, "the entry %s %s", tarstream.Quote(h.Name), why)
	}
	at, why := entryPath(h.Name)
	if why == "" && len(at) > tarstream.MaxPathBytes-len(r.form.prefix)-maxAround {
		why = "has a name longer than archivers take"
	}
	if why != "" {
		return refuse(why)
	}
	switch h.Typeflag {
	case tar.TypeDir, tar.TypeReg:
	case tar.TypeSymlink:
		if !fitTarget(h.Linkname) {
			return refuse("links to a name that no file can have here")
		}
	case tar.TypeLink:
		to, why := entryPath(h.Linkname)
		switch its := r.seen[to]; {
		case why == "" && its.kind == tar.TypeReg:
		case why == "" && its.kind == tar.TypeSymlink: // not every archiver makes one more name of a link
			h.Typeflag, h.Linkname = its.kind, its.target
		default:
			return refuse("is a hard link to something that is no file of this archive")
		}
	default:
		return refuse("is neither folder, regular file nor symbolic link")
	}
	if at == "." {
		if h.Typeflag != tar.TypeDir {
			return refuse("has no name")
		}
		return at, nil
	}
	if its, ok := r.seen[at]; ok && (its.kind != 0 || h.Typeflag != tar.TypeDir) {
		return refuse("comes twice")
	}
	for up := path.Dir(at); up != "."; up = path.Dir(up) {
		its, ok := r.seen[up]
		if ok && its.kind != 0 && its.kind != tar.TypeDir {
			return refuse("lies below a file or a link of the archive")
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

// entryPath is the clean relative path of an entry's name, or why it is none that
// travels.
func entryPath(name string) (at, why string) {
	if at, why = cleanPath(name); why == "" {
		why = tooFar(at)
	}
	return at, why
}

// cleanPath is the clean relative path of an entry's name, "." for the folder
// itself, or why no file can have it.
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
			return "", "has a name that is no clean relative path"
		}
	}
	if len(parts) == 0 {
		return ".", ""
	}
	return strings.Join(parts, "/"), ""
}

// tooFar says why a clean path cannot travel.
func tooFar(at string) string {
	if strings.Count(at, "/") >= tarstream.DefaultMaxDepth {
		return "lies too deep"
	}
	for part := range strings.SplitSeq(at, "/") {
		if len(part) > tarstream.MaxNameBytes {
			return "has a component longer than 255 bytes in its name"
		}
	}
	return ""
}

// maxAround is what an archiver may put around a name, "./" and an end.
const maxAround = 3

// drained reads what follows the archive's end: only zeros may.
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

// broken classifies a failure to read or to write the stream itself.
func (r *refilling) broken(err error) error {
	if errors.Is(err, tarstream.ErrSparse) || errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrFieldTooLong) {
		return extensions.Errorf(extensions.KindInvalid, "this is not a whole tar stream: %w", err).
			WithRemedy("give an uncompressed tar archive, from its beginning to its end")
	}
	return err
}

// tally counts what is read, and ends with its context.
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
