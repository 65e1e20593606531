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
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// headerBytes bounds what one entry's headers may take of the stream: two
// names of 4095 bytes with their framing fit twice.
const headerBytes = 32 << 10

// Unpack extracts the tar stream r below dir, a path relative to root that is
// made if missing (links in dir itself are followed within root; "." is root).
// Existing files and links are replaced, existing folders kept; a folder never
// replaces a file nor a file a folder (KindConflict).
//
// KindInvalid refuses, before anything of that entry is written: absolute
// names, "..", names with NUL or line breaks, overlong or too deep ones,
// entries that come twice, entries below something that is not a folder, hard
// links, devices, sparse files, more bytes or entries than Options allows, and
// a stream that is cut off or goes on after its end. Whatever the error,
// nothing is written after it, a half-written file is removed, and folders
// made so far keep mode 0700. The stream is read to its end. Set-id and sticky
// bits are dropped.
func Unpack(ctx context.Context, r io.Reader, root *os.Root, dir string, opts Options) (Manifest, error) {
	opts = opts.withDefaults()
	top, err := makeTop(root, path.Clean(dir), opts)
	if err != nil {
		return Manifest{}, extensions.Errorf(extensions.KindInvalid, "the folder %q cannot be used: %w", extensions.Clean(dir, 200), cause(err))
	}
	defer top.Close()
	limit := opts.MaxBytes + int64(opts.MaxEntries)*headerBytes + 1<<20
	raw := &io.LimitedReader{R: ctxReader{ctx, r}, N: limit} // N also tells how much was read
	u := &unpacker{ctx: ctx, opts: opts, tree: newTree(top), seen: map[string]Type{}, tr: tar.NewReader(raw)}
	defer u.tree.close()
	err = u.run(raw)
	if raw.N <= 0 { // cut by us, so neither its end nor its digest was seen
		return Manifest{}, tooMuch("the stream is longer than %d bytes", limit)
	}
	if err != nil {
		return Manifest{}, err
	}
	u.m.sort()
	return u.m, nil
}

// makeTop makes what is missing of dir, with the owner asked for, and opens it.
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
	tr    *tar.Reader
	tree  *tree
	seen  map[string]Type // every path of the stream, parents it only implies too
	dirs  []dirEntry      // folders whose owner and mode are set at the end
	m     Manifest
	count int
	bytes int64
}

func (u *unpacker) run(raw *io.LimitedReader) error {
	for {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		before := raw.N
		h, err := u.tr.Next()
		if err == io.EOF {
			if before-raw.N < endBytes {
				return u.broken(io.ErrUnexpectedEOF)
			}
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return u.broken(err)
		}
		if u.count++; u.count > u.opts.MaxEntries {
			return tooMuch("it holds more than %d entries", u.opts.MaxEntries)
		}
		if err := u.entry(h); err != nil {
			return err
		}
	}
	if err := endsHere(raw); err != nil {
		return u.broken(err)
	}
	return u.finishDirs()
}

// endBytes is the mark that ends an archive: two blocks of zeros. archive/tar
// also takes a stream that just stops between two entries for whole; whoever
// reads an absent file as a deleted one cannot.
const endBytes = 1024

var errTrailing = errors.New("bytes follow the end of the archive")

// endsHere reads what follows the archive's end: only zero padding may.
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
	case errors.As(err, &ours), u.ctx.Err() != nil:
		return err
	case errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, tar.ErrFieldTooLong), errors.Is(err, errTrailing):
		return extensions.Errorf(extensions.KindInvalid, "this is not a whole tar stream: %w", err).
			WithRemedy("Give an uncompressed tar archive, from its beginning to its end.")
	}
	return fmt.Errorf("read the tar stream: %w", err)
}

// entry checks one header wholly before it writes anything.
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
	if u.opts.Skip != nil && u.opts.Skip(at, e.Type == TypeDir) {
		if _, err := io.Copy(io.Discard, u.tr); err != nil {
			return u.broken(err)
		}
		return nil
	}
	if err := u.write(&e, h.ModTime); err != nil {
		return u.unwritable(at, err)
	}
	u.m.Entries = append(u.m.Entries, e)
	return nil
}

func (u *unpacker) describe(h *tar.Header, at string) (Entry, error) {
	refuse := func(why string) (Entry, error) {
		return Entry{}, extensions.Errorf(extensions.KindInvalid, "the entry %q %s", extensions.Clean(at, 200), why)
	}
	e := Entry{Path: at, Mode: fs.FileMode(h.Mode) & fs.ModePerm}
	switch h.Typeflag {
	case tar.TypeDir:
		e.Type = TypeDir
		return e, nil
	case tar.TypeReg:
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				return refuse("is a sparse file")
			}
		}
		if e.Type, e.Size = TypeFile, h.Size; at == "." {
			return refuse("is a file without a name")
		}
		if e.Size < 0 || e.Size > u.opts.MaxBytes-u.bytes {
			return Entry{}, tooMuch("with %q it is larger than %d bytes", at, u.opts.MaxBytes)
		}
		u.bytes += e.Size
		return e, nil
	case tar.TypeSymlink:
		if e.Type, e.Mode, e.Link = TypeSymlink, 0o777, h.Linkname; at == "." {
			return refuse("is a link without a name")
		}
		if why := unfitName(e.Link); why != "" {
			return refuse("links to a name that " + why)
		}
		if u.opts.InsideLinks && LinkLeaves(at, e.Link) {
			return refuse("links outside the folder")
		}
		return e, nil
	case tar.TypeLink:
		return refuse("is a hard link, which is never extracted")
	}
	return refuse("is neither folder, regular file nor symbolic link")
}

// claim refuses a path that came before, and one below a non-folder.
func (u *unpacker) claim(e Entry) error {
	if t, ok := u.seen[e.Path]; ok && (t != typeImplied || e.Type != TypeDir) {
		return extensions.Errorf(extensions.KindInvalid, "the entry %q comes twice", extensions.Clean(e.Path, 200))
	}
	for up := path.Dir(e.Path); up != "."; up = path.Dir(up) {
		t, ok := u.seen[up]
		if !ok {
			u.seen[up] = typeImplied
			continue
		}
		if t != TypeDir && t != typeImplied {
			return extensions.Errorf(extensions.KindInvalid, "the entry %q lies below a %s", extensions.Clean(e.Path, 200), t)
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
	return fmt.Errorf("extract %q: %w", extensions.Clean(at, 200), err)
}

func keptTime(opts Options, t time.Time) time.Time {
	if opts.KeepTimes {
		return t
	}
	return time.Time{}
}
