// Package owned keeps files that belong to a living process. Each is locked as long as its owner lives.
// The kernel releases the lock when the process ends, however it ends, so later processes can tell which
// files have no owner.
package owned

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// File is a lock file that this process holds.
type File struct{ lock *flock.Flock }

// retry is the pause between attempts to lock.
const retry = 20 * time.Millisecond

// Lock creates the file, which must serve only as a lock, and locks it. It waits while another holder, in
// this or another process, has the lock, until ctx ends.
func Lock(ctx context.Context, path string) (*File, error) {
	for {
		lock := flock.New(path)
		if _, err := lock.TryLockContext(ctx, retry); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		f, err := present(lock)
		if f != nil || err != nil {
			return f, err
		}
	}
}

// TryLock is Lock without waiting: it returns nil if somebody else holds the file.
func TryLock(path string) (*File, error) {
	lock := flock.New(path)
	if ok, err := lock.TryLock(); err != nil || !ok {
		return nil, errors.Join(err, lock.Close())
	}
	return present(lock)
}

// present returns nil if the file was removed, and perhaps created anew, before it was locked.
func present(lock *flock.Flock) (*File, error) {
	ours, err := lock.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(lock.Path()); err == nil && os.SameFile(ours, there) {
			return &File{lock}, nil
		}
	}
	if cerr := lock.Close(); cerr != nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, cerr)
	}
	return nil, nil
}

// Release removes the file and releases the lock.
func (f *File) Release() error {
	// The file is removed while locked, so others see either a lock or no file. Where open files cannot be
	// removed, it is removed right after.
	removed := os.Remove(f.lock.Path()) == nil
	err := f.lock.Close()
	if !removed {
		err = errors.Join(err, IgnoreMissing(os.Remove(f.lock.Path())))
	}
	return err
}

// Locked reports whether somebody holds the file. It tests with a shared lock, so two concurrent tests do
// not mistake each other for the holder.
func Locked(path string) (bool, error) {
	probe := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := probe.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	err = errors.Join(err, probe.Close())
	return err == nil && !free, err
}

// Clear removes the file if nobody holds it, and reports whether somebody does. Its name must never be used again, and its
// owner must lock it by TryLock, and take another name if that fails: nobody who looks at the file mistakes another one for
// its owner, or removes what its owner has locked meanwhile.
func Clear(path string) (held bool, err error) {
	probe := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := probe.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	removed := free && os.Remove(path) == nil // as long as nobody can lock it
	err = errors.Join(err, probe.Close())
	if free && !removed { // where open files cannot be removed, nor can its owner's
		err = errors.Join(err, IgnoreMissing(os.Remove(path)))
	}
	return err == nil && !free, err
}

// IgnoreMissing returns nil if the file is already gone.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Name patterns of the folders and of the files that show whether their owner lives.
const (
	folderStart = "run-"
	lockSuffix  = ".lock"
)

// Folder is a folder of temporary files that this process owns.
type Folder struct {
	Path string
	lock *File
}

// NewFolder creates an empty folder in parent, which it creates with mode 0700 if missing. Close removes
// the folder with its content.
func NewFolder(parent string) (*Folder, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(parent, folderStart+strings.ToLower(rand.Text()[:12]))
	lock, err := Lock(context.Background(), path+lockSuffix) // a new name: nobody else waits for it
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return &Folder{path, lock}, nil
}

// Close removes the folder and its lock.
func (f *Folder) Close() error { return errors.Join(removeTree(f.Path), f.lock.Release()) }

// Sweep removes folders in parent whose owner is dead, and unheld lock files that match one of the
// patterns. What cannot be removed is left to the next sweep.
func Sweep(parent string, patterns ...string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), lockSuffix)
		switch {
		case strings.HasPrefix(name, folderStart):
		case isLock && matches(e.Name(), patterns):
		default:
			continue
		}
		lock, err := TryLock(filepath.Join(parent, name+lockSuffix))
		if err != nil || lock == nil {
			continue
		}
		if strings.HasPrefix(name, folderStart) {
			_ = removeTree(filepath.Join(parent, name))
		}
		_ = lock.Release()
	}
}

func matches(name string, patterns []string) bool {
	for _, p := range patterns {
		if ok, _ := filepath.Match(p, name); ok {
			return true
		}
	}
	return false
}

// removeTree makes folders writable first, since some arrive without write permission.
func removeTree(path string) error {
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // a folder, and it has to be entered
		}
		return nil
	})
	return os.RemoveAll(path)
}
