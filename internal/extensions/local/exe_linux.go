package local

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// sealedSelf returns our own executable in sealed memory. A process copies it once; all inits it starts share
// the pages. Nothing inside a sandbox can change it, whoever owns the file on disk, and upgrading the file
// does not change a running sandbox.
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
	if err := sendAll(fd, int(self.Fd())); err != nil {
		_ = f.Close()
		return nil, os.NewSyscallError("sendfile", err)
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

// sendAll copies a file to its end within the kernel: our executable has tens of megabytes, and every first sandbox of a
// process waits for it.
func sendAll(to, from int) error {
	for {
		n, err := unix.Sendfile(to, from, nil, 1<<30)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return nil
		}
	}
}
