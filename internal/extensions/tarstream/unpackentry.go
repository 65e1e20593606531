package tarstream

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// impliedMode is the mode of a folder that the stream names only as a parent.
const impliedMode fs.FileMode = 0o755

func (u *unpacker) write(e *Entry, mtime time.Time) error {
	if !nameable(e.Path) {
		return extensions.Errorf(extensions.KindInvalid, "the name %s cannot exist on this system", Quote(e.Path))
	}
	if e.Type == TypeDir {
		if _, err := u.tree.enter(e.Path, u.implied); err != nil {
			return err
		}
		u.dirs = append(u.dirs, dirEntry{*e, keptTime(u.opts, mtime)})
		return nil
	}
	parent, err := u.tree.enter(path.Dir(e.Path), u.implied)
	if err != nil {
		return err
	}
	name := path.Base(e.Path)
	if err := clearWay(parent, name, e.Path); err != nil {
		return err
	}
	if e.Type == TypeSymlink {
		return u.symlink(parent, name, e.Link)
	}
	if e.Same != "" {
		return u.tree.top.Link(e.Same, e.Path) // whatever replaced it, the link stays in the folder
	}
	return u.file(parent, name, e, keptTime(u.opts, mtime))
}

func (u *unpacker) implied(at string) {
	u.dirs = append(u.dirs, dirEntry{entry: Entry{Path: at, Type: typeImplied, Mode: impliedMode}})
}

// clearWay removes a file or link in the way. It never opens or truncates the object, which may be a link or
// another name of a foreign file.
func clearWay(parent *os.Root, name, at string) error {
	info, err := parent.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return extensions.Errorf(extensions.KindConflict, "%s is a folder there, but would become a file", Quote(at)).
			WithRemedy("Remove the folder first, or write to another place.")
	}
	return parent.Remove(name)
}

func (u *unpacker) symlink(parent *os.Root, name, target string) error {
	if err := parent.Symlink(target, name); err != nil {
		return err
	}
	if o := u.opts.Owner; o != nil {
		return parent.Lchown(name, o.UID, o.GID)
	}
	return nil
}

func (u *unpacker) file(parent *os.Root, name string, e *Entry, mtime time.Time) (err error) {
	f, err := parent.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		err = cmp.Or(err, f.Close())
		if err == nil && !mtime.IsZero() {
			err = parent.Chtimes(name, mtime, mtime)
		}
		if err != nil {
			_ = parent.Remove(name)
		}
	}()
	h := newContentHash()
	to := intoFile{f}
	if err := u.in.content(both{to, h}); err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) { // ours, not the stream's
			return err
		}
		return u.broken(err)
	}
	e.SHA256 = h.digest()
	if err := to.end(e.Size); err != nil {
		return err
	}
	return u.own(f, e.Mode)
}

// own sets owner and mode through the open object, never by name.
func (u *unpacker) own(f *os.File, mode fs.FileMode) error {
	if o := u.opts.Owner; o != nil {
		if err := f.Chown(o.UID, o.GID); err != nil {
			return err
		}
	}
	return f.Chmod(mode.Perm() &^ u.opts.Umask)
}

// finishDirs sets the owner and mode of folders last, deepest first, so that a folder without write
// permission can still be filled. A folder the stream both implied and named is set twice, the named form
// last.
func (u *unpacker) finishDirs() error {
	last := map[string]dirEntry{}
	for _, d := range u.dirs {
		if have, ok := last[d.entry.Path]; !ok || have.entry.Type == typeImplied {
			last[d.entry.Path] = d
		}
	}
	dirs := make([]dirEntry, 0, len(last))
	for _, d := range last {
		dirs = append(dirs, d)
	}
	deepestFirst(dirs)
	for _, d := range dirs {
		if err := u.finishDir(d); err != nil {
			return u.unwritable(d.entry.Path, err)
		}
	}
	return nil
}

func (u *unpacker) finishDir(d dirEntry) error {
	dir, err := u.tree.enter(d.entry.Path, nil)
	if err != nil {
		return err
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if !d.mtime.IsZero() {
		if err := dir.Chtimes(".", d.mtime, d.mtime); err != nil {
			return err
		}
	}
	return u.own(f, d.entry.Mode)
}
