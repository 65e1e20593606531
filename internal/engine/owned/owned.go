// Package owned keeps files that belong to a living process. Each is locked as
// long as its owner lives; the kernel ends the lock with the process, however
// that ended, so that whoever comes later knows what nobody owns any more.
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

// retry is the pause between two tries to get a lock.
const retry = 20 * time.Millisecond

// Hold makes the file, which must have no other use, and locks it. While
// another process, or another part of this one, holds it, Hold waits; it gives
// up with the context.
func Hold(ctx context.Context, path string) (*File, error) {
	for {
		lock := flock.New(path)
		if _, err := lock.TryLockContext(ctx, retry); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		f, err := holding(lock)
		if f != nil || err != nil {
			return f, err
		}
	}
}

// TryHold is Hold without waiting: nil where somebody else holds the file.
func TryHold(path string) (*File, error) {
	lock := flock.New(path)
	if ok, err := lock.TryLock(); err != nil || !ok {
		return nil, errors.Join(err, lock.Close())
	}
	return holding(lock)
}

// holding is nil where the file was removed, perhaps made anew, before it was locked.
func holding(lock *flock.Flock) (*File, error) {
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

// Release removes the file and gives the lock back.
func (f *File) Release() error {
	// Removed while locked: who tests it sees a lock or no file. Where open
	// files cannot be removed, it is removed right after.
	removed := os.Remove(f.lock.Path()) == nil
	err := f.lock.Close()
	if !removed {
		err = errors.Join(err, IgnoreMissing(os.Remove(f.lock.Path())))
	}
	return err
}

// Held reports whether somebody holds the file. It is tested shared, so that two
// who look at the same time do not take each other for the holder.
func Held(path string) (bool, error) {
	probe := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := probe.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	err = errors.Join(err, probe.Close())
	return err == nil && !free, err
}

// IgnoreMissing takes what is gone already for removed.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Names of folders and of the files that say whether their owner lives.
const (
	folderStart = "run-"
	lockEnding  = ".lock"
)

// Folder is a folder of temporary files that this process owns.
type Folder struct {
	Path string
	lock *File
}

// NewFolder makes an empty folder in parent, which is made with mode 0700 if
// missing. Close removes it with all that is in it.
func NewFolder(parent string) (*Folder, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(parent, folderStart+strings.ToLower(rand.Text()[:12]))
	lock, err := Hold(context.Background(), path+lockEnding) // of a new name
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return &Folder{path, lock}, nil
}

// Close removes the folder.
func (f *Folder) Close() error { return errors.Join(removeTree(f.Path), f.lock.Release()) }

// Sweep removes the folders in parent whose owner is dead, and the lock files
// there that nobody holds and that match one of the patterns. What cannot be
// removed stays for the next time.
func Sweep(parent string, patterns ...string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), lockEnding)
		switch {
		case strings.HasPrefix(name, folderStart):
		case isLock && matches(e.Name(), patterns):
		default:
			continue
		}
		lock, err := TryHold(filepath.Join(parent, name+lockEnding))
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

// removeTree opens folders first that came without write permission.
func removeTree(path string) error {
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // a folder, and it has to be entered
		}
		return nil
	})
	return os.RemoveAll(path)
}
