//go:build unix

package local

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/initd"
)

func initConfig(spec extensions.Spec, home, path string) initd.Config {
	return initd.Config{ID: string(spec.ID), Home: home, Env: environment(spec, home, path), IdleReap: time.Duration(spec.IdleReap)}
}

func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errBusy
		default:
			return err
		}
	}
}

func listenAt(path string) (*os.File, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	defer func() { _ = l.Close() }()
	if err := os.Chmod(path, 0o700); err != nil {
		return nil, err
	}
	return l.File()
}
