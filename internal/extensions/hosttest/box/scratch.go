package box

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
)

// A shelf's folder has a file that is locked as long as its test process lives.
const (
	scratchName = "sandboxer-box-*"
	lockName    = ".lock"
)

// scratch makes a folder that goes with the test. If the process is killed, the next test with a shelf removes it.
func scratch(t testing.TB) string {
	t.Helper()
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchName, lockName)) // the pattern is a good one
	for _, lock := range left {
		if err := sweep(lock); err != nil {
			t.Logf("what a killed test left: %v", err)
		}
	}
	for {
		dir, err := os.MkdirTemp("", scratchName)
		if err != nil {
			t.Fatal(err)
		}
		held, ok := locked(filepath.Join(dir, lockName))
		if !ok {
			continue // it was just swept
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Errorf("the folder of the boxes: %v", err)
			}
			_ = held.Close()
		})
		return dir
	}
}

// sweep removes the folder of a lock that nobody holds. Its own test may be removing it just now, so no file is made anew.
func sweep(lock string) error {
	held, ok := locked(lock, flock.SetFlag(os.O_RDWR))
	if !ok {
		return nil
	}
	defer func() { _ = held.Close() }()
	return os.RemoveAll(filepath.Dir(lock))
}

func locked(path string, options ...flock.Option) (*flock.Flock, bool) {
	lock := flock.New(path, options...)
	ok, err := lock.TryLock()
	if err == nil && ok {
		ours, err1 := lock.Stat()
		there, err2 := os.Stat(path)
		ok = err1 == nil && err2 == nil && os.SameFile(ours, there) // it may have been removed before it was locked
	}
	if err != nil || !ok {
		_ = lock.Close()
		return nil, false
	}
	return lock, true
}
