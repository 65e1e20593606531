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

// below is a path inside: a relative one begins at the folder of the sandbox's user.
func below(at string) string {
	if path.IsAbs(at) {
		return at
	}
	return path.Join(home, at)
}

// Get implements contents.Inside.
func (i *inside) Get(ctx context.Context, at string) ([]byte, error) {
	var text bytes.Buffer
	err := i.get(ctx, below(at), &text)
	return text.Bytes(), err
}

// Put implements contents.Inside.
func (i *inside) Put(ctx context.Context, at string, text []byte) error {
	return i.put(ctx, execwire.File{Path: below(at), Content: bytes.NewReader(text)})
}

// Workspace implements contents.Inside.
func (i *inside) Workspace(ctx context.Context, dir string, spec extensions.Spec) error {
	if spec.Workspace.Source == nil {
		exit, _, err := i.run(ctx, "", "mkdir", "-p", dir)
		if err == nil && exit != 0 {
			err = extensions.Errorf(extensions.KindUnavailable, "mkdir -p %s ended with code %d", dir, exit).
				WithRemedy("use an image whose user may write below %s", home)
		}
		return err
	}
	r, err := spec.Workspace.Source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return tarbox.Upload(ctx, r, tarbox.Whole(i.transport, dir, where))
}
