package tarstream

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// headerBytes bounds the headers of one entry: two names of 4095 bytes with their framing fit twice.
const headerBytes = 32 << 10

// Unpack extracts the tar stream r below dir, a path relative to root that it creates if missing. It follows
// links in dir itself within root; "." is root. It replaces existing files and links and keeps existing
// folders; a folder never replaces a file nor a file a folder (KindConflict).
//
// Before it writes anything of an entry, Unpack refuses with KindInvalid: absolute names, "..", names with
// NUL, overlong or too deep names, duplicate entries, entries below something that is not a folder, hard
// links to anything but a file of this stream, devices, sparse files in another form than Pack's, more bytes
// or entries than Options allows, and a stream that is cut off or goes on after its end. After any error it
// writes nothing more, removes a half-written file, and leaves the folders it created at mode 0700. It reads
// the stream to its end. It drops set-id and sticky bits.
func Unpack(ctx context.Context, r io.Reader, root *os.Root, dir string, opts Options) (Manifest, error) {
	opts = opts.withDefaults()
	top, err := makeTop(root, path.Clean(dir), opts)
	if err != nil {
		return Manifest{}, extensions.Errorf(extensions.KindInvalid, "the folder %q cannot be used: %w", extensions.Clean(dir, 200), cause(err))
	}
	defer top.Close()
	u := newUnpacker(ctx, opts, newTree(top))
	defer u.tree.close()
	u.place = u.write
	if err := u.run(r); err != nil {
		return Manifest{}, err
	}
	if err := u.finishDirs(); err != nil {
		return Manifest{}, err
	}
	u.m.sort()
	return u.m, nil
}

// makeTop creates what is missing of dir, with the owner asked for, and opens it.
func makeTop(root *os.Root, dir string, opts Options) (*os.Root, error) {
	for i := range len(dir) + 1 {
		if i < len(dir) && dir[i] != '/' || dir == "." {
			continue
		}
		err := root.Mkdir(dir[:i], impliedMode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = root.Chmod(dir[:i], impliedMode&^opts.Umask)
		}
		if err == nil && opts.Owner != nil {
			err = root.Lchown(dir[:i], opts.Owner.UID, opts.Owner.GID)
		}
		if err != nil {
			return nil, err
		}
	}
	return root.OpenRoot(dir + "/.")
}

type unpacker struct {
	ctx   context.Context
	opts  Options
	in    *Reader
	tree  *tree
	place func(e *Entry, mtime time.Time) error // takes an entry that passed the checks
	seen  map[string]Type                       // every path of the stream, implied parents too
	files map[string]Entry                      // those that links may name
	dirs  []dirEntry                            // folders whose owner and mode are set at the end
	m     Manifest
	count int64
	bytes int64
}

func newUnpacker(ctx context.Context, opts Options, t *tree) *unpacker {
	return &unpacker{ctx: ctx, opts: opts.withDefaults(), tree: t, seen: map[string]Type{}, files: map[string]Entry{}}
}

func (u *unpacker) run(r io.Reader) error {
	limit := u.opts.MaxBytes + u.opts.MaxEntries*headerBytes + 1<<20
	raw := &io.LimitedReader{R: ctxReader{u.ctx, r}, N: limit}
	u.in = NewReader(raw)
	err := u.entries()
	if err == nil {
		err = u.broken(endsHere(raw))
	}
	if raw.N <= 0 { // cut by us before its end and digest
		return tooMuch("the stream is longer than %d bytes", limit)
	}
	return err
}

func (u *unpacker) entries() error {
	for {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		before := u.in.Offset()
		h, err := u.in.Next()
		if errors.Is(err, io.EOF) {
			if u.in.Offset()-before < endBytes {
				return u.broken(io.ErrUnexpectedEOF)
			}
			return nil
		}
		if err != nil {
			return u.broken(err)
		}
		if u.count++; u.count > u.opts.MaxEntries {
			return tooMuch("it has more than %d entries", u.opts.MaxEntries)
		}
		if err := u.entry(h); err != nil {
			return err
		}
	}
}

// endBytes is the mark that ends an archive: two blocks of zeros. archive/tar also accepts a stream that
// simply stops between two entries; a reader that takes an absent file for a deleted one must not.
const endBytes = 1024

var errTrailing = errors.New("bytes follow the end of the archive")

// endsHere reads what follows the archive's end and accepts only zero padding.
func endsHere(r io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for _, b := range buf[:n] {
			if b != 0 {
				return errTrailing
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// broken classifies a failure to read the stream itself.
func (u *unpacker) broken(err error) error {
	var ours *extensions.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours), u.ctx.Err() != nil:
		return err
	case errors.Is(err, ErrSparse), errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, tar.ErrFieldTooLong),
		errors.Is(err, errTrailing):
		return extensions.Errorf(extensions.KindInvalid, "this is not a complete tar stream: %w", err).
			WithRemedy("Give a complete, uncompressed tar archive.")
	}
	return fmt.Errorf("read the tar stream: %w", err)
}

// entry checks one header completely before it writes anything.
func (u *unpacker) entry(h *tar.Header) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil // comments, such as git's commit id
	}
	at, err := checkName(h.Name, u.opts.MaxDepth)
	if err != nil {
		return err
	}
	e, err := u.describe(h, at)
	if err != nil || at == "." {
		return err
	}
	if err := u.claim(e); err != nil {
		return err
	}
	if err := u.place(&e, h.ModTime); err != nil {
		return u.unwritable(at, err)
	}
	if u.opts.NoEntries {
		return nil
	}
	if e.Type == TypeFile && e.Same == "" {
		u.files[e.Path] = e
	}
	u.m.Entries = append(u.m.Entries, e)
	return nil
}

func (u *unpacker) describe(h *tar.Header, at string) (Entry, error) {
	refuse := func(why string) (Entry, error) {
		return Entry{}, extensions.Errorf(extensions.KindInvalid, "the entry %s %s", Quote(at), why)
	}
	e := Entry{Path: at, Mode: fs.FileMode(h.Mode) & fs.ModePerm}
	switch h.Typeflag {
	case tar.TypeDir:
		e.Type = TypeDir
		return e, nil
	case tar.TypeReg:
		if e.Type, e.Size = TypeFile, h.Size; at == "." {
			return refuse("is a file without a name")
		}
		n := cost(e, u.in.extents())
		if e.Size < 0 || n > u.opts.MaxBytes-u.bytes {
			return Entry{}, tooMuch("with %s it exceeds %d bytes", Quote(at), u.opts.MaxBytes)
		}
		u.bytes += n
		return e, nil
	case tar.TypeSymlink:
		if e.Type, e.Mode, e.Link = TypeSymlink, 0o777, h.Linkname; at == "." {
			return refuse("is a link without a name")
		}
		if why := unfitTarget(e.Link); why != "" {
			return refuse("links to a name that " + why)
		}
		if u.opts.InsideLinks && LinkLeaves(at, e.Link) {
			return refuse("links outside the folder")
		}
		return e, nil
	case tar.TypeLink:
		first, ok := u.linked(h.Linkname)
		if !ok {
			return refuse("is a hard link to something that is not a file of this stream")
		}
		first.Same, first.Path = first.Path, at
		return first, nil
	}
	return refuse("is not a folder, regular file or symbolic link")
}

// linked returns the file of this stream that a hard link names.
func (u *unpacker) linked(name string) (Entry, bool) {
	at, err := checkName(name, u.opts.MaxDepth)
	if u.opts.NoEntries {
		return Entry{Path: at, Type: TypeFile}, err == nil && u.seen[at] == TypeFile
	}
	e, ok := u.files[at]
	return e, ok && err == nil
}

// claim refuses a path that came before, and one below a non-folder.
func (u *unpacker) claim(e Entry) error {
	if t, ok := u.seen[e.Path]; ok && (t != typeImplied || e.Type != TypeDir) {
		return extensions.Errorf(extensions.KindInvalid, "the entry %s appears twice", Quote(e.Path))
	}
	for up := path.Dir(e.Path); up != "."; up = path.Dir(up) {
		t, ok := u.seen[up]
		if !ok {
			u.seen[up] = typeImplied
			continue
		}
		if t != TypeDir && t != typeImplied {
			return extensions.Errorf(extensions.KindInvalid, "the entry %s is below a %s", Quote(e.Path), t)
		}
		break // its own parents were checked when it came
	}
	u.seen[e.Path] = e.Type
	return nil
}

// typeImplied marks a folder known only as a parent.
const typeImplied Type = "implied"

func (u *unpacker) unwritable(at string, err error) error {
	var ours *extensions.Error
	if errors.As(err, &ours) || u.ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("extract %s: %w", Quote(at), err)
}

func keptTime(opts Options, t time.Time) time.Time {
	if opts.KeepTimes {
		return t
	}
	return time.Time{}
}
