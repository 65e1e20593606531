//go:build !linux

package local

import (
	"runtime"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func errNoWalls() error {
	return extensions.Errorf(extensions.KindUnsupported, "%s cannot wall a sandbox as this extension does", runtime.GOOS).
		WithRemedy("use a Linux machine, an extension with containers, or isolation: {level: none} for code you trust")
}
