package compose

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

const (
	// MaxFile is the largest file, in bytes, that reading a stack may need.
	MaxFile = 1 << 20
	// maxKept bounds the memory a bundle keeps, in bytes.
	maxKept = 64 << 20
	// maxEntries bounds the names of a bundle.
	maxEntries = 2_000_000
	// maxLinks bounds the symbolic links that one name may pass through.
	maxLinks = 40
)

// EntryType is the type of an entry.
type EntryType byte

// The only three types in a source's stream.
const (
	TypeDir     EntryType = 'd'
	TypeFile    EntryType = 'f'
	TypeSymlink EntryType = 'l'
)

// Entry is one name in a bundle.
type Entry struct {
	Name   string
	Type   EntryType
	Size   int64  // bytes, of files
	Mode   uint32 // permission bits
	Link   string // as stored, of symlinks
	Digest string // lower-case hex SHA-256 of a file's content
	data   []byte // a file's, up to MaxFile, if kept
	kept   bool
}

// Bundle is the index of a tar stream: what exists, without its large files. Names are slash-separated,
// relative and clean; "." is the root. It is safe for concurrent use.
type Bundle struct {
	src     extensions.WorkspaceSource
	entries map[string]*Entry

	mu   sync.Mutex // bytes kept
	kept int64

	needed sync.Map // names that were looked up
}

// Why a name leads nowhere.
var (
	errLeaves  = errors.New("it leaves the bundle")
	errMissing = errors.New("it is not in the bundle")
	errLinks   = errors.New("its symbolic links form a cycle")
)

// ReadBundle indexes the source. A stream that breaks WorkspaceSource's promises is KindInvalid; one that
// does not match its digest, KindConflict.
func ReadBundle(ctx context.Context, src extensions.WorkspaceSource) (*Bundle, error) {
	b := &Bundle{src: src, entries: map[string]*Entry{".": {Name: ".", Type: TypeDir, Mode: 0o755}}}
	if x, is := src.(Indexed); is {
		return b, x.bundle(b)
	}
	if src == nil {
		return b, nil
	}
	err := b.scan(ctx, b.add)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// scan walks the stream once.
func (b *Bundle) scan(ctx context.Context, visit func(h *tar.Header, name string, r *tarstream.Reader) error) error {
	rc, err := b.src.Open(ctx)
	if err != nil {
		return err
	}
	defer rc.Close()
	all := sha256.New()
	tr := tarstream.NewReader(io.TeeReader(rc, all))
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			if _, err := io.Copy(all, rc); err != nil {
				return unreadable(b.src, err)
			}
			return b.verify(hex.EncodeToString(all.Sum(nil)))
		}
		if err != nil {
			return unreadable(b.src, err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		if name == "" || path.IsAbs(name) || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../") ||
			strings.ContainsRune(name, 0) {
			return unreadable(b.src, errors.New("the name "+extensions.Clean(h.Name, 80)+" is not relative and clean"))
		}
		if err := visit(h, name, tr); err != nil {
			return unreadable(b.src, err)
		}
	}
}

// verify compares what was read with the source's digest, if it has one: the host must receive what was
// policed.
func (b *Bundle) verify(digest string) error {
	if want := b.src.Digest(); want != "" && digest != want {
		return extensions.Errorf(extensions.KindConflict, "the bundle from %s changed while it was read: sha256 %s was expected, %s arrived",
			extensions.Clean(b.src.Origin(), 200), extensions.Clean(want, 64), digest).WithRemedy("Plan again.")
	}
	return nil
}

func unreadable(src extensions.WorkspaceSource, err error) error {
	var known *extensions.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return extensions.Errorf(extensions.KindInvalid, "the bundle from %s cannot be read: %w", extensions.Clean(src.Origin(), 200), err).
		WithRemedy("Pack the folder again; its stream may contain only folders, files and symbolic links.")
}

func (b *Bundle) add(h *tar.Header, name string, r *tarstream.Reader) error {
	if len(b.entries) >= maxEntries {
		return errors.New("it has more than two million entries")
	}
	e := &Entry{Name: name, Mode: uint32(h.Mode) & 0o7777}
	switch h.Typeflag {
	case tar.TypeDir:
		e.Type = TypeDir
	case tar.TypeSymlink:
		e.Type, e.Link = TypeSymlink, h.Linkname
	case tar.TypeReg:
		e.Type, e.Size = TypeFile, h.Size
		if err := b.content(e, r); err != nil {
			return err
		}
	default:
		return errors.New(extensions.Clean(name, 80) + " is neither a folder, a file nor a symbolic link")
	}
	// Parents missing from the stream are plain folders; any other type would let two places share one name.
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		p, ok := b.entries[dir]
		if ok && p.Type != TypeDir {
			return errors.New(extensions.Clean(name, 80) + " is below something that is not a folder")
		}
		if ok {
			break
		}
		b.entries[dir] = &Entry{Name: dir, Type: TypeDir, Mode: 0o755}
	}
	if old, ok := b.entries[name]; ok && (old.Type != TypeDir || e.Type != TypeDir) {
		return errors.New(extensions.Clean(name, 80) + " is in it twice")
	}
	b.entries[name] = e
	return nil
}

// content digests a file and keeps it where a stack is likely to need it, so that a large repository does not
// end up in memory.
func (b *Bundle) content(e *Entry, r *tarstream.Reader) (err error) {
	if e.Size > MaxFile || b.kept+e.Size > maxKept || !likely(path.Base(e.Name)) {
		e.Digest, err = r.Digest()
		return err
	}
	var text bytes.Buffer
	if _, err := r.WriteTo(&text); err != nil {
		return err
	}
	e.data, e.kept, e.Digest = text.Bytes(), true, tarstream.ContentDigest(text.Bytes())
	b.kept += int64(text.Len())
	return nil
}

func likely(base string) bool {
	base = strings.ToLower(base)
	switch path.Ext(base) {
	case ".yaml", ".yml", ".env", ".conf", ".labels", ".dockerfile", ".dockerignore", ".json", ".toml":
		return true
	}
	return strings.Contains(base, "dockerfile") || strings.Contains(base, "env") || strings.Contains(base, "compose")
}

// Lookup follows symbolic links inside the bundle and returns the entry a name leads to. It returns nil if
// there is none or a link leaves the bundle.
func (b *Bundle) Lookup(name string) *Entry {
	_, e, err := b.resolve(name)
	if err != nil {
		return nil
	}
	return e
}

// resolve walks the name component by component, as a kernel confined to the bundle would, and returns the
// name without symbolic links. A missing name has no entry and errMissing, with the name it would get.
func (b *Bundle) resolve(name string) (string, *Entry, error) {
	rest := strings.Split(name, "/")
	at, links := ".", 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if at == "." {
				return "", nil, errLeaves
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		e, ok := b.entries[next]
		b.needed.Store(next, nil)
		switch {
		case !ok:
			tail := path.Join(append([]string{next}, rest...)...)
			if slices.Contains(rest, "..") {
				return "", nil, errLeaves // where it leads depends on what will be there
			}
			return tail, nil, errMissing
		case e.Type == TypeSymlink:
			if links++; links > maxLinks {
				return "", nil, errLinks
			}
			if path.IsAbs(e.Link) || e.Link == "" {
				return "", nil, errLeaves
			}
			rest = append(strings.Split(e.Link, "/"), rest...)
		case e.Type == TypeFile && len(rest) > 0:
			return "", nil, errMissing
		default:
			at = next
		}
	}
	return at, b.entries[at], nil
}
