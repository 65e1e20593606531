package local

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/walls"
)

// executable is our own as inits run it. Nothing inside a sandbox can change it, whoever owns the file on disk, and a new
// version that replaces the file does not change a running sandbox.
type executable struct {
	file *os.File
	// path is where the stage that builds the walls finds the same file, to run the init from a mount that cannot be
	// written; "" = the file cannot be written as it is.
	path string
}

// ownExecutable chooses the cheapest way that holds: a mount of our own as root, one within the new namespaces, or a copy,
// whose tens of megabytes every first sandbox of a process waits for. Bubblewrap gives our stage no right to mount.
func ownExecutable(mode string) (executable, error) {
	if mode == modeNamespaces {
		if f, err := mountedSelf(); err == nil {
			return executable{file: f}, nil
		}
		if f, err := openSelf(); err == nil {
			if path, err := os.Executable(); err == nil && sameFile(f, path) {
				return executable{file: f, path: path}, nil
			}
		}
	}
	f, err := sealedSelf()
	return executable{file: f}, err
}

// openSelf opens our executable, even where its file was removed.
var openSelf = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/self/exe") })

// mountedSelf is our executable on a mount that nobody can write through. Only root may make one here, and a file that
// others may not run is of no use to a sandbox's own user.
var mountedSelf = sync.OnceValues(func() (*os.File, error) {
	self, err := openSelf()
	if err != nil {
		return nil, err
	}
	info, err := self.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode()&0o001 == 0 {
		return nil, unix.EACCES
	}
	fd, err := walls.OpenReadOnly(int(self.Fd()), "")
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "sandboxer-init"), nil
})

func sameFile(f *os.File, path string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// sealedSelf returns our own executable in sealed memory. A process copies it once; all inits it starts share the pages.
var sealedSelf = sync.OnceValues(func() (*os.File, error) {
	self, err := openSelf()
	if err != nil {
		return nil, err
	}
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

// sendAll copies a file from its beginning to its end within the kernel.
func sendAll(to, from int) error {
	var at int64
	for {
		n, err := unix.Sendfile(to, from, &at, 1<<30)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return nil
		}
	}
}
