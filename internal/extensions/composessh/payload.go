package composessh

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// maxBuffered is the size, in bytes, up to which a payload stays in memory; a larger one is read twice, first
// for its length and digest.
const maxBuffered = 8 << 20

// payload is the tar that a create sends: the content of the sandbox's folder.
type payload struct {
	files   []payloadFile
	folders []payloadFile
	trees   []payloadTree
	last    []payloadFile // files that no tree may replace
	size    int64
	digest  string // lower-case hex SHA-256
	whole   []byte // nil if too large to keep
}

type payloadFile struct {
	name string // relative to the sandbox's folder; ends in "/" for a folder
	data []byte
}

type payloadTree struct {
	name   string // the folder to unpack the source into
	source extensions.WorkspaceSource
	except string // a file left out, relative to the tree; "" = none
}

// measure determines size and digest, which the host checks before it begins.
func (p *payload) measure(ctx context.Context) error {
	sum := sha256.New()
	buffer := &capped{limit: maxBuffered}
	n := &byteCount{}
	if err := p.write(ctx, io.MultiWriter(sum, buffer, n)); err != nil {
		return err
	}
	p.size, p.digest = n.n, hex.EncodeToString(sum.Sum(nil))
	if !buffer.over {
		p.whole = buffer.Bytes()
	}
	return nil
}

// open streams the payload. The caller must read it to its end or close it.
func (p *payload) open(ctx context.Context) io.ReadCloser {
	if p.whole != nil {
		return io.NopCloser(bytes.NewReader(p.whole))
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(p.write(ctx, w)) }()
	return r
}

func (p *payload) write(ctx context.Context, to io.Writer) error {
	w := tar.NewWriter(to)
	if err := writeFiles(w, append(slices.Clip(p.files), p.folders...)); err != nil {
		return err
	}
	relay := tarstream.NewDenseRelay(to, tarbox.MaxFilled) // the host's tar may know no sparse files
	for _, t := range p.trees {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: t.name + "/", Mode: mode(t.name+"/", 0o755)}); err != nil {
			return err
		}
		if err := copyTree(ctx, relay, t); err != nil {
			return fmt.Errorf("packing %s: %w", t.source.Origin(), err)
		}
	}
	if err := writeFiles(w, p.last); err != nil {
		return err
	}
	return w.Close()
}

func writeFiles(w *tar.Writer, files []payloadFile) error {
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.data)), Mode: 0o600}
		if strings.Contains(f.name, "/") { // in a tree, which the containers' users read
			h.Mode = mode(f.name, 0o644)
		}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, mode(f.name, 0o755)
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return nil
}

// mode returns the mode on the host of an entry that has mode m where it comes from. The workspace is open to all users of
// the containers, but for files that are not for everybody.
func mode(name string, m int64) int64 {
	switch {
	case !strings.HasPrefix(name, "workspace/"):
		return m & 0o755
	case strings.HasSuffix(name, "/"):
		return 0o777
	case m&0o004 != 0:
		return m&0o777 | 0o666
	}
	return m & 0o777
}

// copyTree moves the entries of a source below the tree's name. It drops owners and all times but the file's
// own. Packing the source refused anything but files, folders and links; copyTree refuses it again.
func copyTree(ctx context.Context, w *tarstream.Relay, t payloadTree) error {
	src, err := t.source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	var long overlong
	for r := tarstream.NewReader(src); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			if err := long.refused(); err != nil {
				return err
			}
			return w.Flush()
		}
		if err != nil {
			return err
		}
		name := path.Clean(h.Name)
		if path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") {
			return extensions.Errorf(extensions.KindInvalid, "%q is outside the packed folder", h.Name)
		}
		skip, err := t.skips(name, h.Typeflag)
		if err != nil {
			return err
		}
		if skip || long.holds(t.name+"/", name) {
			continue
		}
		out := tar.Header{Typeflag: h.Typeflag, Name: t.name + "/" + name, Linkname: h.Linkname, ModTime: h.ModTime.Truncate(time.Second)}
		if h.Typeflag == tar.TypeDir {
			out.Name += "/"
		}
		out.Mode = mode(out.Name, h.Mode)
		switch h.Typeflag {
		case tar.TypeDir:
		case tar.TypeReg, tar.TypeSymlink:
		default:
			return extensions.Errorf(extensions.KindInvalid, "%q is not a file, folder or link", h.Name)
		}
		if err := w.Put(out, r); err != nil {
			return err
		}
	}
}

// overlong collects entries whose paths the host's archiver could not create.
type overlong struct {
	names []string // the first maxListed of them
	count int
}

const maxListed = 20

// holds reports whether name below prefix is too long, and notes it.
func (o *overlong) holds(prefix, name string) bool {
	if tarbox.Fits(prefix, name) {
		return false
	}
	if o.count++; o.count <= maxListed {
		o.names = append(o.names, tarstream.Quote(name))
	}
	return true
}

// refused returns the error that names them, if there are any.
func (o *overlong) refused() error {
	if o.count == 0 {
		return nil
	}
	names := strings.Join(o.names, ", ")
	if more := o.count - len(o.names); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return extensions.Errorf(extensions.KindInvalid, "%d paths are longer than a host over SSH accepts, %d bytes: %s", o.count,
		tarstream.MaxPathBytes, names).
		WithRemedy("shorten them, or exclude them with an ignore file")
}

// skips reports whether an entry is left out. It refuses anything in the place of the excepted file's folder:
// through a link, the file would end up somewhere else.
func (t payloadTree) skips(name string, kind byte) (bool, error) {
	switch {
	case name == ".":
		return true, nil
	case t.except == "":
		return false, nil
	case name == path.Dir(t.except) && kind != tar.TypeDir:
		return false, extensions.Errorf(extensions.KindInvalid,
			"%q in the workspace is not a folder, so the instructions cannot be placed below it", name).
			WithRemedy("remove it from the workspace, or make it a folder")
	}
	return name == t.except || strings.HasPrefix(name, t.except+"/"), nil
}

type byteCount struct{ n int64 }

func (c *byteCount) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

// capped keeps what is written up to a limit, and notes if there was more.
type capped struct {
	bytes.Buffer
	limit int
	over  bool
}

func (c *capped) Write(b []byte) (int, error) {
	if c.over = c.over || c.Len()+len(b) > c.limit; !c.over {
		return c.Buffer.Write(b)
	}
	c.Reset()
	return len(b), nil
}

// consent follows the payload with the word that lets the host begin. It gives the word when asked, if the
// caller is still there; a caller that died before never does, and nothing begins.
type consent struct {
	asked chan struct{}
	ctx   context.Context //nolint:containedctx // a Reader has no other way to be told that the caller gave up
	rest  []byte
	said  bool
}

func newConsent(ctx context.Context) *consent { return &consent{asked: make(chan struct{}), ctx: ctx} }

// progress is called with each line of the host's progress.
func (c *consent) progress(line string) {
	if line == "commit" {
		select {
		case <-c.asked:
		default:
			close(c.asked)
		}
	}
}

func (c *consent) Read(p []byte) (int, error) {
	if !c.said {
		select {
		case <-c.asked:
		case <-c.ctx.Done():
			return 0, c.ctx.Err()
		}
		if err := c.ctx.Err(); err != nil {
			return 0, err
		}
		c.said, c.rest = true, []byte("go\n")
	}
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
