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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// maxBuffered is up to which size a payload is kept in memory; a larger one is
// read twice, once for its length and digest.
const maxBuffered = 8 << 20

// payload is the tar a create sends: what becomes the sandbox's folder.
type payload struct {
	files   []payloadFile
	folders []payloadFile
	trees   []payloadTree
	last    []payloadFile // what no tree may stand in for
	size    int64
	digest  string // lower-case hex SHA-256
	whole   []byte // nil where it is too large to be kept
}

type payloadFile struct {
	name string // relative to the sandbox's folder; ends in "/" for a folder
	data []byte
}

type payloadTree struct {
	name   string // the folder the source is unpacked to
	source extensions.WorkspaceSource
	except string // a file that stays behind, relative to the tree; "" = none
}

// measure fixes size and digest, which the host checks before it begins.
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

// open streams the payload. The reader must be read to its end or closed.
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
	relay := tarstream.NewDenseRelay(to, maxFilled) // the host's tar may know no sparse files
	for _, t := range p.trees {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: t.name + "/", Mode: 0o755}); err != nil {
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
		if strings.Contains(f.name, "/") { // in a tree, which users of the containers read
			h.Mode = 0o644
		}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
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

// copyTree moves the entries of a source below the tree's name. Owners and
// times other than the file's own stay behind; what is neither file, folder
// nor link was refused when the source was packed and is refused again.
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
			return extensions.Errorf(extensions.KindInvalid, "%q leaves the folder it is packed from", h.Name)
		}
		skip, err := t.skips(name, h.Typeflag)
		if err != nil {
			return err
		}
		if skip || long.holds(t.name+"/", name) {
			continue
		}
		out := tar.Header{Typeflag: h.Typeflag, Name: t.name + "/" + name, Mode: h.Mode & 0o777, Linkname: h.Linkname,
			ModTime: h.ModTime.Truncate(time.Second)}
		switch h.Typeflag {
		case tar.TypeDir:
			out.Name += "/"
		case tar.TypeReg, tar.TypeSymlink:
		default:
			return extensions.Errorf(extensions.KindInvalid, "%q is neither a file, a folder nor a link", h.Name)
		}
		if err := w.Put(out, r); err != nil {
			return err
		}
	}
}

// overlong are entries whose paths the host's archiver could not make.
type overlong struct {
	names []string // the first maxListed of them
	count int
}

const maxListed = 20

// holds reports whether name below prefix is one of them, and notes it.
func (o *overlong) holds(prefix, name string) bool {
	if len(prefix)+len(name) <= tarstream.MaxPathBytes-maxAround && tooFar(name) == "" {
		return false
	}
	if o.count++; o.count <= maxListed {
		o.names = append(o.names, tarstream.Quote(name))
	}
	return true
}

// refused is the error that names them, if there are any.
func (o *overlong) refused() error {
	if o.count == 0 {
		return nil
	}
	names := strings.Join(o.names, ", ")
	if more := o.count - len(o.names); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return extensions.Errorf(extensions.KindInvalid, "%d paths are longer than a host over SSH takes, %d bytes: %s", o.count, tarstream.MaxPathBytes, names).
		WithRemedy("shorten them, or leave them out with an ignore file")
}

// skips reports whether an entry stays behind. What stands where the folder of
// the excepted file must be is refused: through a link the file would end
// somewhere else.
func (t payloadTree) skips(name string, kind byte) (bool, error) {
	switch {
	case name == ".":
		return true, nil
	case t.except == "":
		return false, nil
	case name == path.Dir(t.except) && kind != tar.TypeDir:
		return false, extensions.Errorf(extensions.KindInvalid, "%q in the workspace is no folder, so the instructions cannot be placed below it", name).
			WithRemedy("remove it from the workspace, or make it a folder")
	}
	return name == t.except || strings.HasPrefix(name, t.except+"/"), nil
}

type byteCount struct{ n int64 }

func (c *byteCount) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

// capped keeps what is written up to a limit, and notes that there was more.
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

// consent follows the payload with the word that lets the host begin. It says
// it when it is asked and the caller is still there; a caller that died before
// never does, and nothing begins.
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
