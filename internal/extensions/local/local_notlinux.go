//go:build !linux

package local

import (
	"context"
	"net"
	"path/filepath"
	"runtime"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const modeNone = "none"

func errNoWalls() error {
	return extensions.Errorf(extensions.KindUnsupported, "%s cannot isolate a sandbox as this extension does", runtime.GOOS).
		WithRemedy("use a Linux machine, an extension with containers, or isolation: {level: none} for code you trust")
}

func likelyCgroups(extensions.ID) []string { return nil }

func removeCgroups([]string) error { return nil }

func memoryMB() int64 { return 0 }

func freeMemoryMB() *int64 { return nil }

func freeDiskMB(string) int64 { return 0 }

func holding(box) []string { return nil }

func dialSocket(ctx context.Context, b box) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(b.dir, socketName))
}
