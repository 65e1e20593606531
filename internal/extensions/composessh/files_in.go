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
	r := &refilling{ctx: ctx, form: f, counted: &tally{ctx: ctx, r: in}, tw: tar.NewWriter(out), seen: map[string]byte{}}
	r.tr = tar.NewReader(r.counted)
	err := r.run()
	if r.inFile {
		return err // an archive cut in a file is refused by the archiver too
	}
	if closed := r.tw.Close(); err == nil {
		err = closed
	}
	return err
}

type refilling struct {
	ctx     context.Context
	form    form
	counted *tally
	tr      *tar.Reader
	tw      *tar.Writer
	seen    map[string]byte // type of each path, 0 for parents only implied
	inFile  bool
}

// maxEntries bounds one transfer.
const maxEntries = 1_000_000

func (r *refilling) run() error {
	if r.form.made && r.form.prefix != "" {
		if err := r.put(&tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}, "."); err != nil {
			return err
		}
	}
	for n := 0; ; n++ {
		before := r.counted.n
		h, err := r.tr.Next()
		if errors.Is(err, io.EOF) {
			if r.counted.n-before < 1024 {
				return r.broken(io.ErrUnexpectedEOF)
			}
			return r.drained()
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
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
	out := &tar.Header{Typeflag: h.Typeflag, Name: path.Join(r.form.prefix, at), Linkname: h.Linkname, Size: h.Size, Mode: h.Mode & 0o777,
		ModTime: h.ModTime, Uid: r.form.uid, Gid: r.form.gid, Format: tar.FormatGNU}
	if r.form.prefix == "" {
		out.Name = "./" + at
	}
	if h.Typeflag == tar.TypeDir {
		out.Name += "/"
	}
	if err := r.tw.WriteHeader(out); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	r.inFile = true
	if _, err := io.Copy(r.tw, r.tr); err != nil {
		return r.broken(err)
	}
	r.inFile = false
	return r.tw.Flush()
}

// check returns an entry's clean path, "." for the folder itself.
func (r *refilling) check(h *tar.Header) (string, error) {
	refuse := func(why string) (string, error) {
		return "", extensions.Errorf(extensions.KindInvalid, "the entry %q %s", extensions.Clean(h.Name, 200), why)
	}
	at, why := entryPath(h.Name)
	if why != "" {
		return refuse(why)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		h.Size = 0
	case tar.TypeReg:
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				return refuse("is a sparse file")
			}
		}
	case tar.TypeSymlink:
		if h.Size = 0; h.Linkname == "" || len(h.Linkname) > tarstream.MaxPathBytes || strings.ContainsAny(h.Linkname, "\x00\n\r") {
			return refuse("links to a name that no file can have here")
		}
	case tar.TypeLink:
		return refuse("is a hard link, which is never extracted")
	default:
		return refuse("is neither folder, regular file nor symbolic link")
	}
	if at == "." {
		if h.Typeflag != tar.TypeDir {
			return refuse("has no name")
		}
		return at, nil
	}
	if kind, ok := r.seen[at]; ok && (kind != 0 || h.Typeflag != tar.TypeDir) {
		return refuse("comes twice")
	}
	for up := path.Dir(at); up != "."; up = path.Dir(up) {
		kind, ok := r.seen[up]
		if ok && kind != 0 && kind != tar.TypeDir {
			return refuse("lies below a file or a link of the archive")
		}
		if ok {
			break
		}
		r.seen[up] = 0
	}
	r.seen[at] = h.Typeflag
	return at, nil
}

// entryPath is the clean relative path of an entry's name, or why it is none.
func entryPath(name string) (at, why string) {
	switch {
	case name == "":
		return "", "has no name"
	case strings.ContainsAny(name, "\x00\n\r"):
		return "", "has a NUL byte or a line break in its name"
	case len(name) > tarstream.MaxPathBytes:
		return "", "has a name longer than 4095 bytes"
	case strings.HasPrefix(name, "/"):
		return "", "has an absolute name"
	}
	parts := strings.Split(strings.TrimSuffix(name, "/"), "/")
	for len(parts) > 0 && parts[0] == "." {
		parts = parts[1:]
	}
	if len(parts) > tarstream.DefaultMaxDepth {
		return "", "lies too deep"
	}
	for _, part := range parts {
		switch {
		case part == "" || part == "." || part == "..":
			return "", "has a name that is no clean relative path"
		case len(part) > tarstream.MaxNameBytes:
			return "", "has a component longer than 255 bytes in its name"
		}
	}
	if len(parts) == 0 {
		return ".", ""
	}
	return strings.Join(parts, "/"), ""
}

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
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrFieldTooLong) {
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
