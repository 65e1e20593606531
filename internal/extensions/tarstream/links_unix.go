//go:build unix

package tarstream

import (
	"os"
	"syscall"
)

// fileID is the same for all names of one file.
type fileID struct{ dev, ino uint64 }

// severalNames reports whether the file has, or had, more names than this one.
func severalNames(info os.FileInfo) (fileID, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink < 2 {
		return fileID{}, false
	}
	return fileID{uint64(st.Dev), uint64(st.Ino)}, true //nolint:unconvert // their widths differ between systems
}
