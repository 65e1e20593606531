//go:build unix && !linux

package local

import (
	"context"
	"os"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const modeNone = "none"

// launch on systems without namespaces: no walls, and only if that is asked for.
func (b *Backend) launch(ctx context.Context, bx box, rec *record, spec extensions.Spec) error {
	return b.launchPlain(ctx, bx, rec, spec, errNoWalls())
}

func selfPath() (string, error) { return os.Executable() }

func likelyCgroups(extensions.ID) []string { return nil }

func removeCgroups([]string) error { return nil }

func listenSocket(b box) (*os.File, error) { return listenAt(b.path(socketName)) }
