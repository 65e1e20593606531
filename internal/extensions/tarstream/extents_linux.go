package tarstream

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// dataIn finds the extents in the first size bytes. A file system that cannot report holes yields none.
func dataIn(f *os.File, info os.FileInfo) []extent {
	size := info.Size()
	if st, ok := info.Sys().(*syscall.Stat_t); size == 0 || ok && st.Blocks*512 >= size {
		return whole(size)
	}
	var data []extent
	for at := int64(0); at < size; {
		from, err := f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) || err == nil && from >= size {
			break
		}
		var to int64
		if err == nil {
			to, err = f.Seek(from, unix.SEEK_HOLE)
		}
		if err != nil || to <= from {
			return whole(size)
		}
		at = min(to, size)
		data = append(data, extent{from, at - from})
	}
	return fewer(data, maxExtents)
}
