//go:build !unix

package local

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const modeNone = "none"

// launch refuses: without process groups not even isolation none can be ended
// for sure.
func (b *Backend) launch(context.Context, box, *record, extensions.Spec) error {
	return extensions.Errorf(extensions.KindUnsupported, "sandboxes do not run on this system").
		WithRemedy("use a Linux machine, Linux in WSL 2, or an extension with containers")
}

func (b box) plainPath(name string) string { return b.path(filesName) + "/" + name }

func (b box) killGroups(record) error { return nil }

func likelyCgroups(extensions.ID) []string { return nil }

func removeCgroups([]string) error { return nil }
