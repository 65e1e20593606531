package vercel

import (
	"bytes"
	"context"
	"path"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// uploadTime bounds one call that brings files.
const uploadTime = 30 * time.Minute

// atHome is a path inside; a relative one is below the home.
func atHome(at string) string {
	if path.IsAbs(at) {
		return at
	}
	return path.Join(home, at)
}

// Get implements contents.Reader.
func (i *inside) Get(ctx context.Context, at string) ([]byte, error) {
	var text bytes.Buffer
	err := i.get(ctx, atHome(at), &text)
	return text.Bytes(), err
}

// Put implements contents.Inside.
func (i *inside) Put(ctx context.Context, at string, b []byte) error {
	return i.put(ctx, execwire.File{Path: atHome(at), Content: bytes.NewReader(b)})
}

// Workspace implements contents.Inside. What was cut short is done again over what is there.
func (i *inside) Workspace(ctx context.Context, dir string, spec extensions.Spec) error {
	source := spec.Workspace.Source
	if source == nil {
		exit, _, err := i.run(ctx, "", "mkdir", "-p", dir)
		if err == nil && exit != 0 {
			err = extensions.Errorf(extensions.KindUnavailable, "mkdir -p %s ended with code %d", dir, exit).
				WithRemedy("use an image whose user may write below %s", home)
		}
		return err
	}
	r, err := source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return tarbox.Upload(ctx, r, tarbox.Whole(i.transport, dir, where))
}
