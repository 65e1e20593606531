package modal

import (
	"context"
	"regexp"
	"time"

	sdk "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// A snapshot is an image. It has no labels, so the name under which it is published says its id, and the tag its
// sandbox's. Until then, and for ever if we are cut off, only its time ends it.
var (
	imageRef     = regexp.MustCompile(`^im-[A-Za-z0-9]{1,60}$`)
	snapshotName = regexp.MustCompile(`(?:^|/)(snp-[a-z2-7]{20}):(sbx-[a-z2-7]{20})$`)
)

const snapshotTime = 10 * time.Minute // of taking one

// Snapshot implements extensions.Snapshotter.
func (b *backend) Snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (made extensions.Snapshot, err error) {
	defer named("snapshot", h.ID, &err)
	if err := spec.CheckKind(b.desc.Snapshots); err != nil {
		return made, err
	}
	i, err := b.inside(ctx, h)
	if err != nil {
		return made, err
	}
	made, err = b.findSnapshot(ctx, spec.ID)
	if extensions.IsKind(err, extensions.KindIndeterminate) { // not listed
		made, err = i.take(ctx, spec.ID)
	}
	return made, err
}

// take makes an image under the snapshot's id, so that the same call again makes no other, and publishes it.
func (i *inside) take(ctx context.Context, id string) (made extensions.Snapshot, err error) {
	ttl := int64(snapshotOf / time.Second)
	out, err := i.router.TaskSnapshotFilesystem(i.as(ctx),
		pb.TaskSnapshotFilesystemRequest_builder{TaskId: i.task, SnapshotId: id, TtlSeconds: &ttl}.Build(), grpcline.Within(snapshotTime))
	if err != nil {
		return made, i.fresh(err)
	}
	ref := out.GetImageId()
	if !imageRef.MatchString(ref) {
		return made, extensions.Errorf(extensions.KindIndeterminate, "%s names %q as a snapshot", vendor, extensions.Clean(ref, 80))
	}
	_, err = i.b.control.ImagePublish(ctx, pb.ImagePublishRequest_builder{ImageId: ref, EnvironmentName: i.b.environment,
		Tag: id + ":" + string(i.id)}.Build())
	return kept(id, i.id, ref, time.Now().UTC()), err
}

func kept(id string, of extensions.ID, ref string, at time.Time) extensions.Snapshot {
	return extensions.Snapshot{SandboxID: of, Kind: extensions.SnapshotFilesystem, CreatedAt: at, ExpiresAt: at.Add(snapshotOf),
		Handle: extensions.SnapshotHandle{Extension: Handler, Version: handleVersion, ID: id, Ref: ref}}
}

// FindSnapshot implements extensions.Snapshotter.
func (b *backend) FindSnapshot(ctx context.Context, id string) (found extensions.Snapshot, err error) {
	defer named("find-snapshot", "", &err)
	return b.findSnapshot(ctx, id)
}

func (b *backend) findSnapshot(ctx context.Context, id string) (found extensions.Snapshot, err error) {
	if !extensions.ValidSnapshotID(id) {
		return found, extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot id", extensions.Clean(id, 80))
	}
	err = b.published(ctx, pb.ImageListTagsRequest_builder{TagPrefix: id + ":"}, func(s extensions.Snapshot) {
		if s.Handle.ID == id {
			found = s
		}
	})
	if err == nil && found.Handle.ID == "" {
		err = extensions.Errorf(extensions.KindIndeterminate, "%s does not list it; a new snapshot can be missing for %s", vendor, settle)
	}
	return found, err
}

// published shows the snapshots of ours among the names that a query lists, page by page.
func (b *backend) published(ctx context.Context, query pb.ImageListTagsRequest_builder, show func(extensions.Snapshot)) error {
	return rest.Pages(vendor, func(page string) (string, error) {
		query.EnvironmentName, query.PageToken = b.environment, page
		out, err := b.control.ImageListTags(ctx, query.Build())
		if err != nil {
			return "", err
		}
		for _, it := range out.GetItems() {
			m := snapshotName.FindStringSubmatch(it.GetTag())
			if m == nil || !imageRef.MatchString(it.GetImageId()) {
				continue
			}
			show(kept(m[1], extensions.ID(m[2]), it.GetImageId(), time.UnixMilli(int64(it.GetCreatedAt()*1000)).UTC()))
		}
		return out.GetNextPageToken(), nil
	})
}

// StatSnapshot implements extensions.Snapshotter.
func (b *backend) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (found extensions.Snapshot, err error) {
	defer named("stat-snapshot", "", &err)
	return b.statSnapshot(ctx, h)
}

func checkSnapshot(h extensions.SnapshotHandle) error {
	if h.Extension != Handler || h.Version != handleVersion || !extensions.ValidSnapshotID(h.ID) || !imageRef.MatchString(h.Ref) {
		return extensions.Errorf(extensions.KindInvalid, "this is not the handle of a snapshot of %s", vendor)
	}
	return nil
}

// statSnapshot asks for the image itself, whose absence the vendor says, and then whose it is.
func (b *backend) statSnapshot(ctx context.Context, h extensions.SnapshotHandle) (found extensions.Snapshot, err error) {
	if err := checkSnapshot(h); err != nil {
		return found, err
	}
	if _, err := b.sdk.Images.FromID(ctx, h.Ref, nil); err != nil {
		return found, known(err)
	}
	err = b.published(ctx, pb.ImageListTagsRequest_builder{ImageId: h.Ref}, func(s extensions.Snapshot) {
		if s.Handle.Ref == h.Ref && s.Handle.ID == h.ID {
			found = s
		}
	})
	if err == nil && found.Handle.Ref == "" {
		err = extensions.Errorf(extensions.KindConflict, "the snapshot %s at %s does not carry this snapshot's id", h.Ref, vendor).
			WithRemedy("check it at %s; sandboxer does not own it", vendor)
	}
	return found, err
}

// DeleteSnapshot implements extensions.Snapshotter.
func (b *backend) DeleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	_, err := b.statSnapshot(ctx, h)
	if err == nil {
		err = known(b.sdk.Images.Delete(ctx, h.Ref, &sdk.ImageDeleteParams{}))
	}
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return failed("delete-snapshot", "", err)
}
