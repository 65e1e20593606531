//go:build !unix

package local

import (
	"context"
	"os"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// launch refuses: without process groups, not even isolation none can be ended reliably.
func (b *Backend) launch(context.Context, box, *record, extensions.Spec) error {
	return extensions.Errorf(extensions.KindUnsupported, "sandboxes cannot run on this system").
		WithRemedy("use a Linux machine, Linux in WSL 2, or an extension with containers")
}

func (b box) plainPath(name string) string { return b.path(filesName) + "/" + name }

func (b box) killGroups(record) error { return nil }

// This system never runs a sandbox; what a record names is not alive here.

func lockFile(*os.File) error { return nil }

func bootTime() time.Time { return time.Time{} }

func (*process) alive() bool { return false }

func (*process) serves(extensions.ID) bool { return false }

func (*process) rebooted() bool { return false }

func (*process) kill(context.Context) error { return nil }
