package local

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// holdUID takes a free host uid from the range for a sandbox that root creates. A socket with an abstract
// name, which the init inherits, holds it: unique on the host whatever folders are used, and free again once
// the init is gone, for any reason.
func (s settings) holdUID(id extensions.ID) (uid int, hold *os.File, err error) {
	if !mapped(s.uidBase) || !mapped(s.uidBase+uidCount-1) {
		return 0, nil, extensions.Errorf(extensions.KindUnsupported, "the host uids from %d on are not mapped into this user namespace",
			s.uidBase).
			WithRemedy("set config.uid_base of the extension to the first of %d mapped uids", uidCount)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	for i := range uidCount {
		uid = s.uidBase + int((h.Sum32()+uint32(i))%uidCount)
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 0, nil, os.NewSyscallError("socket", err)
		}
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("@sandboxer-uid-%d", uid)})
		if err == nil {
			return uid, os.NewFile(uintptr(fd), "hold"), nil
		}
		_ = unix.Close(fd)
		if !errors.Is(err, unix.EADDRINUSE) {
			return 0, nil, os.NewSyscallError("bind", err)
		}
	}
	return 0, nil, extensions.Errorf(extensions.KindExhausted, "all %d host uids for sandboxes are in use", uidCount)
}

// mapped reports whether a uid exists in our own user namespace.
func mapped(uid int) bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		first, _ := strconv.Atoi(f[0])
		count, _ := strconv.Atoi(f[2])
		if uid >= first && uid < first+count {
			return true
		}
	}
	return false
}
