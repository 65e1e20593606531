package tarstream

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var errChanged = errors.New("it changed its type meanwhile")

// openDir opens the folder name in parent and refuses a symbolic link. The trailing "/." makes os.Root open
// name with O_DIRECTORY; without it, a FIFO put there in the meantime would block forever.
func openDir(parent *os.Root, name string) (*os.Root, error) {
	seen, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, extensions.Errorf(extensions.KindInvalid, "%s is not a folder", Quote(name))
	}
	dir, err := parent.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	got, err := dir.Stat(".")
	if err == nil && !os.SameFile(seen, got) {
		err = errChanged
	}
	if err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("%s: %w", Quote(name), err)
	}
	return dir, nil
}

// OpenFolder opens the folder at, a slash-separated path below root, without following any link on the way. A
// missing folder is fs.ErrNotExist; anything but a folder on the way is KindConflict.
func OpenFolder(root *os.Root, at string) (*os.Root, error) { return openFolder(root, at, nil) }

// MakeFolder is OpenFolder, but creates missing folders with the caller's umask.
func MakeFolder(root *os.Root, at string) (*os.Root, error) {
	return openFolder(root, at, func(parent *os.Root, name string) error {
		if err := parent.Mkdir(name, 0o777); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
}

func openFolder(root *os.Root, at string, missing func(parent *os.Root, name string) error) (*os.Root, error) {
	dir, err := root.OpenRoot(".")
	if err != nil || at == "." {
		return dir, err
	}
	if at, err = checkName(at, DefaultMaxDepth); err != nil {
		_ = dir.Close()
		return nil, err
	}
	for name := range strings.SplitSeq(at, "/") {
		parent := dir
		if missing != nil {
			err = missing(parent, name)
		}
		if err == nil {
			dir, err = openDir(parent, name)
		}
		_ = parent.Close()
		if err != nil {
			return nil, inTheWay(err, at)
		}
	}
	return dir, nil
}

// inTheWay reports what openDir refused as a conflict with what exists.
func inTheWay(err error, at string) error {
	if !extensions.IsKind(err, extensions.KindInvalid) {
		return err
	}
	return extensions.Errorf(extensions.KindConflict, "%s exists and is not a folder", Quote(at)).
		WithRemedy("Remove it first, or write to another folder.")
}

// openDir is the function of that name with the owner's permissions, as the options say. done closes the
// folder and restores its mode.
func (p *packer) openDir(parent *os.Root, name string) (dir *os.Root, done func(), err error) {
	back := p.lend(parent, name, 0o500)
	if dir, err = openDir(parent, name); err != nil {
		back(parent, name)
		return nil, nil, err
	}
	return dir, func() {
		back(dir, ".")
		_ = dir.Close()
	}, nil
}

// openFile does the same for a regular file.
func (p *packer) openFile(parent *os.Root, name string, seen os.FileInfo) (f *os.File, info os.FileInfo, done func(), err error) {
	back := p.lend(parent, name, 0o400)
	f, info, err = openFile(parent, name, seen)
	back(parent, name) // an open file stays readable
	return f, info, func() { _ = f.Close() }, err
}

// lend adds rights to an object's mode if the options allow it and the caller owns the object; back removes
// them.
func (p *packer) lend(parent *os.Root, name string, rights fs.FileMode) (back func(at *os.Root, name string)) {
	kept := func(*os.Root, string) {}
	if !p.opts.OpenUp {
		return kept
	}
	seen, err := parent.Lstat(name)
	if err != nil || seen.Mode()&rights == rights || seen.Mode()&fs.ModeSymlink != 0 {
		return kept
	}
	if parent.Chmod(name, seen.Mode()|rights) != nil {
		return kept
	}
	return func(at *os.Root, name string) { _ = at.Chmod(name, seen.Mode()) }
}

// openFile opens the regular file name in parent for reading and refuses everything else. The size is the
// open file's.
func openFile(parent *os.Root, name string, seen os.FileInfo) (*os.File, os.FileInfo, error) {
	f, err := parent.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	got, err := f.Stat()
	if err == nil && (!got.Mode().IsRegular() || !os.SameFile(seen, got)) {
		err = errChanged
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, got, nil
}
