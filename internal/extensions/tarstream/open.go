package tarstream

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var errChanged = errors.New("it changed into something else meanwhile")

// openDir opens the folder name of parent and refuses a symbolic link. The
// trailing "/." makes os.Root open name with O_DIRECTORY; without it a FIFO
// put there meanwhile would block for ever.
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

// OpenFolder opens the folder at, a slash-separated path below root, without
// following a link anywhere on the way. What is missing is fs.ErrNotExist;
// something else than a folder on the way is KindConflict.
func OpenFolder(root *os.Root, at string) (*os.Root, error) { return openFolder(root, at, nil) }

// MakeFolder is OpenFolder, making what is missing with the caller's umask.
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

// inTheWay tells what openDir refused as a conflict with what is there.
func inTheWay(err error, at string) error {
	if !extensions.IsKind(err, extensions.KindInvalid) {
		return err
	}
	return extensions.Errorf(extensions.KindConflict, "%s is there and is not a folder", Quote(at)).
		WithRemedy("Remove it first, or write to another folder.")
}

// openDir is openDir with the owner's rights, as the options say. done closes
// the folder and gives it back its mode.
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

// openFile is the same for a regular file.
func (p *packer) openFile(parent *os.Root, name string, seen os.FileInfo) (f *os.File, info os.FileInfo, done func(), err error) {
	back := p.lend(parent, name, 0o400)
	f, info, err = openFile(parent, name, seen)
	back(parent, name) // what is open stays readable
	return f, info, func() { _ = f.Close() }, err
}

// lend adds rights to an object's mode where the options allow that and it is
// the caller's own; back takes them away again.
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

// openFile opens the regular file name of parent for reading and refuses
// everything else. The size is that of the open file.
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
