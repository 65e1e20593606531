//go:build unix

package tarstream

import (
	"os"
	"syscall"
)

func owner(info os.FileInfo) (uid, gid int) {
	st := info.Sys().(*syscall.Stat_t)
	return int(st.Uid), int(st.Gid)
}
