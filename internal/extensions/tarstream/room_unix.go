//go:build linux || darwin

package tarstream

import (
	"os"

	"golang.org/x/sys/unix"
)

// roomOf returns the free bytes available to us, and the size, of the disk f is on.
func roomOf(f *os.File) (free, total int64, ok bool) {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil {
		return 0, 0, false
	}
	size := int64(st.Bsize) //nolint:unconvert // its width differs between systems
	return int64(st.Bavail) * size, int64(st.Blocks) * size, true
}
