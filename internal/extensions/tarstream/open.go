package tarstream

import (
	"errors"
	"fmt"
	"os"

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
		return nil, extensions.Errorf(extensions.KindInvalid, "%q is not a folder", name)
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
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	return dir, nil
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
