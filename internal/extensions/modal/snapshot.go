package modal

import (
	"context"
	"regexp"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shelf"
)

// imageRef is the form of the vendor's names of images. A snapshot is one, published under its id as the name and its
// sandbox's as the tag. Until then, and for ever if we are cut off, only its time ends it.
var imageRef = regexp.MustCompile(`^im-[A-Za-z0-9]{1,60}$`)

const snapshotTime = 10 * time.Minute // of taking one

// take makes an image under the snapshot's id, so that the same call again makes no other, and publishes it.
func (b *backend) take(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (made shelf.Named, err error) {
	i, err := b.inside(ctx, h)
	if err != nil {
		return made, err
	}
	ttl := int64(snapshotOf / time.Second)
	out, err := i.router.TaskSnapshotFilesystem(i.as(ctx),
		pb.TaskSnapshotFilesystemRequest_builder{TaskId: i.task, SnapshotId: spec.ID, TtlSeconds: &ttl}.Build(), grpcline.Within(snapshotTime))
	if err != nil {
		return made, i.fresh(err)
	}
	made = shelf.Named{Name: spec.ID + ":" + string(i.id), Ref: out.GetImageId(), At: time.Now().UTC()}
	if imageRef.MatchString(made.Ref) {
		_, err = b.control.ImagePublish(ctx,
			pb.ImagePublishRequest_builder{ImageId: made.Ref, EnvironmentName: b.environment, Tag: made.Name}.Build())
	}
	return made, err
}

// published shows the names of a snapshot or of an image, whose absence the vendor says.
func (b *backend) published(ctx context.Context, id, ref string, until func(shelf.Named) bool) error {
	query := pb.ImageListTagsRequest_builder{TagPrefix: id + ":", EnvironmentName: b.environment}
	if ref != "" {
		if _, err := b.control.ImageFromId(ctx, pb.ImageFromIdRequest_builder{ImageId: ref}.Build()); err != nil {
			return err
		}
		query.TagPrefix, query.ImageId = "", ref
	}
	return rest.Pages(vendor, func(page string) (string, error) {
		query.PageToken = page
		out, err := b.control.ImageListTags(ctx, query.Build())
		if err != nil {
			return "", err
		}
		for _, it := range out.GetItems() {
			at := time.UnixMilli(int64(it.GetCreatedAt() * 1000)).UTC()
			if until(shelf.Named{Name: it.GetTag(), Ref: it.GetImageId(), At: at}) {
				return "", nil
			}
		}
		return out.GetNextPageToken(), nil
	})
}

func (b *backend) drop(ctx context.Context, ref string) error {
	_, err := b.control.ImageDelete(ctx, pb.ImageDeleteRequest_builder{ImageId: ref}.Build())
	return err
}
