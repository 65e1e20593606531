package local

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// sealedSelf returns our own executable in sealed memory. It is copied once in
// the life of a process; all inits it starts share the pages. Nobody inside a
// sandbox can change it, whoever owns the file on disk, and an upgrade of the
// file does not change a running sandbox.
var sealedSelf = sync.OnceValues(func() (*os.File, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	defer func() { _ = self.Close() }()
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("sandboxer-init", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("sandboxer-init", flags)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "sandboxer-init")
	if _, err := io.Copy(f, self); err != nil {
		_ = f.Close()
		return nil, err
	}
	if err := unix.Fchmod(fd, 0o555); err != nil {
		_ = f.Close()
		return nil, err
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		_ = f.Close()
		return nil, os.NewSyscallError("sealing", err)
	}
	return f, nil
})
