package local

import (
	"context"
	"fmt"
	"net"
	"os"
)

// Socket addresses hold 107 bytes, and state folders may have longer names: open the folder and name the
// socket below its descriptor.

func dialSocket(ctx context.Context, b box) (net.Conn, error) {
	dir, err := os.Open(b.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName))
}

// listenSocket creates the socket and returns it as a file that outlives us in the init.
func listenSocket(b box) (*os.File, error) {
	dir, err := os.Open(b.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return listenAt(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName))
}
