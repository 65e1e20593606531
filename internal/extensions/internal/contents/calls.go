package contents

import (
	"bytes"
	"context"
	"path"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// Calls is the Inside of a place that takes whole files and runs short programs. Its image has mkdir, and tar where a workspace
// has a source.
type Calls struct {
	execwire.Calls
	// Home is the folder of the sandbox's user, Where names the sandbox in messages.
	Home, Where string
}

func (c Calls) below(at string) string {
	if path.IsAbs(at) {
		return at
	}
	return path.Join(c.Home, at)
}

// Get implements Reader.
func (c Calls) Get(ctx context.Context, at string) ([]byte, error) {
	var text bytes.Buffer
	err := c.Calls.Get(ctx, c.below(at), &text)
	return text.Bytes(), err
}

// Put implements Inside.
func (c Calls) Put(ctx context.Context, at string, text []byte) error {
	return c.Calls.Put(ctx, execwire.File{Path: c.below(at), Content: bytes.NewReader(text)})
}

// Workspace implements Inside.
func (c Calls) Workspace(ctx context.Context, dir string, spec extensions.Spec) error {
	if spec.Workspace.Source == nil {
		exit, _, err := c.Run(ctx, "", "mkdir", "-p", dir)
		if err == nil && exit != 0 {
			err = extensions.Errorf(extensions.KindUnavailable, "mkdir -p %s ended with code %d", dir, exit).
				WithRemedy("use an image whose user may write below %s", c.Home)
		}
		return err
	}
	r, err := spec.Workspace.Source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return tarbox.Upload(ctx, r, tarbox.Whole(c.Transport, dir, c.Where))
}
