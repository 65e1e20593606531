//go:build unix

package local

import (
	"net"
	"os"
)

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
