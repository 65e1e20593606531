package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// A commit may take commitTime, and a second for each commitRate bytes that the container wrote; at most maxCommitTime.
// An engine whose images are in containerd counts no holes in these bytes, and compresses each: only time bounds how long
// a sandbox is held for them. It does not stop when the call ends.
const (
	commitTime    = 2 * time.Minute
	commitRate    = 8 << 20
	maxCommitTime = 20 * time.Minute
)

// copying is one copy of a sandbox, kept in the engine as images.
type copying struct {
	key  string
	name string // for people
	kind extensions.SnapshotKind
	live bool
}

// copyOut makes a copy of a sandbox of this account, or leaves none. The copy is complete once the image that
// stands for it has a name that says so.
func (b *Backend) copyOut(ctx context.Context, h extensions.Handle, c copying) error {
	found, _, err := b.live(ctx, h)
	if err != nil {
		return err
	}
	if found.account != b.settings.account {
		return extensions.Errorf(extensions.KindConflict, "%s belongs to the account %q", h.ID, extensions.Clean(found.account, 80))
	}
	if c.kind == extensions.SnapshotWorkspace && found.agent().Labels[labelWorkDir] == "" {
		return extensions.Errorf(extensions.KindUnsupported, "the sandbox has no workspace").At("kind").
			WithRemedy("take a snapshot of kind %s", extensions.SnapshotFilesystem)
	}
	if err := b.tag(ctx, found.agent().ImageID, c.key, tagOf+string(h.ID)); err != nil {
		return err
	}
	b.step("begun")
	err = b.copyHeld(ctx, h, c)
	if _, _, gone := b.live(ctx, h); err != nil && extensions.IsKind(gone, extensions.KindNotFound) {
		err = extensions.Errorf(extensions.KindNotFound, "the sandbox %s ended while it was copied: %w", h.ID, gone).
			WithRemedy("copy one that lives")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	released := b.thaw(ctx, h.ID, c.key)
	b.step("released")
	if released != nil && err == nil {
		return released // the copy says whom to release
	}
	k, left := b.kept(ctx, c.key)
	if left == nil {
		left = b.dropCopy(ctx, k, func(tag string) bool { return err != nil || tag == tagOf+string(h.ID) })
	}
	return errors.Join(err, released, left)
}

func (b *Backend) copyHeld(ctx context.Context, h extensions.Handle, c copying) error {
	found, err := b.hold(ctx, h, c.key, c.live)
	if err != nil {
		return err
	}
	at, _ := found.standing()
	if err := b.sweep(ctx, h.ID, at.hold); err != nil {
		return err
	}
	if c.kind == extensions.SnapshotWorkspace {
		return b.keepWorkspace(ctx, found, c)
	}
	return b.keepContainers(ctx, found, c)
}

// labels are those of an image with a part of the copy.
func (c copying) labels(of objects, service, path string) map[string]string {
	return map[string]string{labelHandler: Handler, labelCopy: c.key, labelName: c.name, labelService: service, labelPath: path,
		extensions.LabelAccount: of.account, extensions.LabelID: string(of.id)}
}

// keepContainers makes an image of each container and of each volume in it. What is in memory, secrets among it,
// is in none: neither an engine's commit nor its archives have a tmpfs.
func (b *Backend) keepContainers(ctx context.Context, found objects, c copying) error {
	volumes := 0
	for n, at := range found.containers {
		size, err := b.keepContainer(ctx, found, c, at, n)
		if err != nil {
			return err
		}
		for _, m := range size.Mounts {
			if m.Type != mount.TypeVolume {
				continue
			}
			if err := b.store(ctx, reference(c.key, fmt.Sprint(tagVolume, volumes)), c.labels(found, at.Labels[labelService], m.Destination),
				func(w io.Writer) error { return b.archive(ctx, at.ID, m.Destination, w) }); err != nil {
				return fmt.Errorf("copying the volume at %s: %w", extensions.Clean(m.Destination, 200), err)
			}
			volumes++
			b.step("volume")
		}
	}
	k, err := b.kept(ctx, c.key)
	if err != nil {
		return err
	}
	size := int64(0)
	for _, i := range slices.Concat(k.each(tagContainer), k.each(tagVolume)) {
		size += i.Size
		if i.ParentID == "" {
			continue
		}
		if p, err := b.engine.ImageInspect(ctx, i.ParentID); err == nil { // its files are not the copy's own
			size -= min(p.Size, i.Size)
		}
	}
	return b.finish(ctx, c, k.each(tagContainer)[0].ID, size, k.sum())
}

// keepContainer makes an image of a container's files. The engine goes on with it whoever is gone, so it is not
// canceled.
func (b *Backend) keepContainer(ctx context.Context, of objects, c copying, at container.Summary,
	n int) (container.InspectResponse, error) {
	r, err := b.small(ctx, at)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return r, err
	}
	labels := c.labels(of, at.Labels[labelService], "")
	for name := range at.Labels { // of the sandbox that is copied, or its profile
		if _, ours := labels[name]; !ours && name != labelImage && name != labelWorkDir && name != labelAccess {
			labels[name] = ""
		}
	}
	limit := commitLimit(b.commitTime, r.SizeRw)
	err = uncut(ctx, limit, func(ctx context.Context) error {
		_, err := b.engine.ContainerCommit(ctx, at.ID, client.ContainerCommitOptions{NoPause: true,
			Reference: reference(c.key, fmt.Sprint(tagContainer, n)), Config: &container.Config{Labels: labels}})
		return err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = extensions.Errorf(extensions.KindTimeout, "the engine made no image of the data written by the service %s within %s",
			extensions.Clean(at.Labels[labelService], 80), limit).
			WithRemedy("remove large files inside, those with holes among them, or give the engine a faster disk")
	}
	b.step("committed")
	return r, err
}

func commitLimit(base time.Duration, size *int64) time.Duration {
	if size != nil {
		base += time.Duration(*size/commitRate) * time.Second
	}
	return min(base, maxCommitTime)
}

// small refuses a container whose own files are too large for a copy.
func (b *Backend) small(ctx context.Context, c container.Summary) (container.InspectResponse, error) {
	r, err := b.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{Size: true})
	if s := r.Container.SizeRw; err == nil && s != nil && *s > maxKept {
		err = tooBig("the data written by the service " + extensions.Clean(c.Labels[labelService], 80) + "")
	}
	return r.Container, err
}

// archive writes a folder of a container as the engine archives it: with owners, and as root reads it.
func (b *Backend) archive(ctx context.Context, id, path string, w io.Writer) error {
	r, err := b.engine.CopyFromContainer(ctx, id, client.CopyFromContainerOptions{SourcePath: path})
	if err != nil {
		return err
	}
	defer func() { _ = r.Content.Close() }()
	_, err = io.Copy(w, r.Content)
	return err
}

// keepWorkspace keeps the agent's workspace as the stream that other places can restore, too.
func (b *Backend) keepWorkspace(ctx context.Context, found objects, c copying) error {
	agent, sum := found.agent(), tarstream.NewHasher()
	if _, err := b.small(ctx, agent); err != nil {
		return err
	}
	err := b.store(ctx, reference(c.key, tagWorkspace), c.labels(found, extensions.AgentService, ""), func(w io.Writer) error {
		return tarbox.Download(ctx, io.MultiWriter(w, sum), b.engine.archives(agent, agent.Labels[labelWorkDir]))
	})
	if err != nil {
		return fmt.Errorf("copying the workspace: %w", err)
	}
	b.step("stored")
	return b.finish(ctx, c, reference(c.key, tagWorkspace), sum.Size(), sum.Digest())
}

// finish makes the copy complete.
func (b *Backend) finish(ctx context.Context, c copying, image string, size int64, digest string) error {
	err := b.tag(ctx, image, c.key, fmt.Sprintf("%s%s.%d.%s", tagWhole, c.kind, size, digest))
	b.step("finished")
	return err
}

func (b *Backend) tag(ctx context.Context, image, key, tag string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return uncut(ctx, cleanupTime, func(ctx context.Context) error {
		_, err := b.engine.ImageTag(ctx, client.ImageTagOptions{Source: image, Target: reference(key, tag)})
		return err
	})
}

// volumes are the images of the volumes of a service's container, by their paths inside.
func (k kept) volumes(service string) map[string]string {
	all := map[string]string{}
	for _, i := range k.each(tagVolume) {
		if i.Labels[labelService] == service {
			all[i.Labels[labelPath]] = i.ID
		}
	}
	return all
}

// containers are the images of the containers, by service.
func (k kept) containers() map[string]image {
	all := map[string]image{}
	for _, i := range k.each(tagContainer) {
		service := i.Labels[labelService]
		img := readImage(i.Labels[labelImage])
		img.id, img.named, img.labels, img.volumes = i.ID, true, i.Labels, k.volumes(service)
		all[service] = img
	}
	return all
}
