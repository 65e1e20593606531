package docker

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// Upload implements extensions.FileTransfer: the image's own tar unpacks, with the sandbox's own rights. An image
// without one gets the files from the engine.
func (b *Backend) Upload(ctx context.Context, h extensions.Handle, dir string, archive io.Reader) error {
	return failed("upload", h.ID, b.transfer(ctx, h, dir, func(way tarbox.Way) error { return tarbox.Upload(ctx, archive, way) }))
}

// Download implements extensions.FileTransfer.
func (b *Backend) Download(ctx context.Context, h extensions.Handle, from string, w io.Writer) error {
	return failed("download", h.ID, b.transfer(ctx, h, from, func(way tarbox.Way) error { return tarbox.Download(ctx, w, way) }))
}

func (b *Backend) transfer(ctx context.Context, h extensions.Handle, at string, move func(tarbox.Way) error) error {
	if strings.ContainsRune(at, 0) {
		return extensions.Errorf(extensions.KindInvalid, "the path contains a NUL byte")
	}
	c, err := b.enter(ctx, h, "")
	if err != nil {
		return err
	}
	if base := c.Labels[labelWorkDir]; !path.IsAbs(at) {
		if base == "" {
			base = "/"
		}
		at = path.Join(base, at)
	}
	err = move(tarbox.Inside(b.transport(c, ""), at, "the sandbox"))
	if errors.Is(err, tarbox.ErrNoArchiver) {
		defer b.using(ctx, c)()
		err = move(b.engine.archives(c, at))
	}
	return err
}

// archives is the way of the engine itself, which needs nothing in the image. It reads and writes as root.
func (e *engine) archives(c container.Summary, at string) tarbox.Way {
	end := func(err error) (tarbox.End, error) {
		if errdefs.IsNotFound(err) {
			return tarbox.End{}, extensions.Errorf(extensions.KindNotFound, "%s is not in the sandbox", extensions.Clean(at, 200))
		}
		return tarbox.End{Path: at, Where: "the sandbox"}, err
	}
	return tarbox.Way{
		In: func(ctx context.Context, from io.Reader, begin func(tarbox.Form)) (tarbox.End, error) {
			r, err := e.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
			if err != nil {
				return end(err)
			}
			who, err := e.owner(ctx, c.ID, r.Container.Config.User)
			if err != nil {
				return end(err)
			}
			begin(tarbox.Form{Prefix: strings.Trim(path.Clean(at), "/"), UID: who.uid, GID: who.gid, Made: e.lacks(ctx, c.ID, at)})
			_, err = e.CopyToContainer(ctx, c.ID, client.CopyToContainerOptions{DestinationPath: "/", Content: from})
			return end(err)
		},
		Out: func(ctx context.Context, to io.Writer, _ bool, begin func(bool)) (tarbox.End, error) {
			r, err := e.CopyFromContainer(ctx, c.ID, client.CopyFromContainerOptions{SourcePath: at})
			if err != nil {
				return end(err)
			}
			defer func() { _ = r.Content.Close() }()
			begin(true)
			_, err = io.Copy(to, r.Content)
			return end(err)
		},
	}
}
