package stage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// keep waits until the init is gone, whoever ended it, and removes its cgroups. The init cannot: it lies in
// them and has no right to their parents.
func keep() error {
	var dirs []string
	if err := ReadConfig(FDConfig, &dirs); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil { // do not block an umount
		return err
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: FDInit, Events: unix.POLLIN}}, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
		if n > 0 {
			return RemoveCgroups(dirs)
		}
	}
}

// RemoveCgroups removes the empty folders; the kernel may need a moment after the last process ended.
func RemoveCgroups(dirs []string) error {
	var failed error
	for _, dir := range dirs {
		if !strings.HasPrefix(filepath.Base(dir), "sandboxer-sbx-") {
			continue // a record that somebody else wrote
		}
		for waited, pause := time.Duration(0), time.Millisecond; ; waited, pause = waited+pause, min(2*pause, 20*time.Millisecond) {
			err := os.Remove(dir)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			if waited > 2*time.Second {
				failed = errors.Join(failed, err)
				break
			}
			time.Sleep(pause)
		}
	}
	return failed
}
