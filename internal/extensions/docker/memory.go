package docker

import (
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// secure refuses a container with secrets where a volume of the image would lie over the memory that they are to be in: they
// would be on the engine's disk, and in copies. An engine mounts by the length of the names, and names may lead through links
// of the image.
func (m *making) secure(ctx context.Context, id string) error {
	r, err := m.engine.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil || len(r.Container.Mounts) == 0 {
		return err
	}
	memory := map[string]string{}
	for _, dir := range slices.Sorted(maps.Keys(m.memory(m.agent))) {
		if memory[dir], err = m.engine.leads(ctx, id, dir); err != nil {
			return err
		}
	}
	for _, volume := range r.Container.Mounts {
		at, err := m.engine.leads(ctx, id, volume.Destination)
		if err != nil {
			return err
		}
		for dir, real := range memory {
			if depth(volume.Destination) >= depth(dir) && (within(at, real) || within(real, at)) {
				return extensions.Errorf(extensions.KindUnsupported, "the image's volume %s lies over %s, where secrets are in memory",
					extensions.Clean(volume.Destination, 200), dir).
					WithRemedy("use an image without this volume, or a sandbox without secrets")
			}
		}
	}
	return nil
}

// leads returns where a path inside leads, through the links of a container that has not started.
func (e *engine) leads(ctx context.Context, container, name string) (string, error) {
	at := "/"
	for part := range strings.SplitSeq(strings.Trim(path.Clean(name), "/"), "/") {
		at = path.Join(at, part)
		r, err := e.ContainerStatPath(ctx, container, client.ContainerStatPathOptions{Path: at})
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if r.Stat.Mode&fs.ModeSymlink != 0 {
			at = path.Clean("/" + r.Stat.LinkTarget)
		}
	}
	return at, nil
}

func depth(name string) int { return strings.Count(path.Clean(name), "/") }

// within reports whether a path is a folder or below it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}
