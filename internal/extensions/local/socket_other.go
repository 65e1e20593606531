//go:build !linux

package local

import (
	"context"
	"net"
	"path/filepath"
)

func dialSocket(ctx context.Context, b box) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(b.dir, socketName))
}
