package modal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	sdk "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

const (
	maxFile  = 4 << 20 // bytes of one file of a context: the vendor's own client sends larger ones to another store
	joinTime = 55      // seconds that one call follows a build, as the vendor's SDK asks
)

// built returns the vendor's name of an image, made if it is not there. The SDK's own build takes neither files nor
// arguments, and keeps the log to itself.
func (b *backend) built(ctx context.Context, app *sdk.App, r compose.Recipe, in *pb.Image) (string, error) {
	extensions.Progress(ctx, "Preparing "+r.What, "")
	where, err := b.control.EnvironmentGetOrCreate(ctx, pb.EnvironmentGetOrCreateRequest_builder{DeploymentName: b.environment}.Build())
	if err != nil {
		return "", err
	}
	out, err := b.control.ImageGetOrCreate(ctx, pb.ImageGetOrCreateRequest_builder{AppId: app.AppID, Image: in,
		BuilderVersion: where.GetMetadata().GetSettings().GetImageBuilderVersion()}.Build())
	if err != nil {
		return "", err
	}
	result, log, last := out.GetResult(), compose.BuildLog{Vendor: vendor, What: r.What}, ""
	for result.GetStatus() == pb.GenericResult_GENERIC_STATUS_UNSPECIFIED && err == nil {
		result, last, err = b.follow(ctx, out.GetImageId(), last, &log)
	}
	switch result.GetStatus() { //nolint:exhaustive // the others do not tell of the image
	case pb.GenericResult_GENERIC_STATUS_SUCCESS:
	case pb.GenericResult_GENERIC_STATUS_FAILURE:
		err = log.Failed(result.GetException(), r.Build)
	default:
		if err == nil {
			err = extensions.Errorf(extensions.KindUnavailable, "the build of %s ended: %s", r.What, ending(result)).WithRemedy("try again")
		}
	}
	return out.GetImageId(), err
}

// follow hears of a build for a while, from the entry last on.
func (b *backend) follow(ctx context.Context, id, last string, log *compose.BuildLog) (*pb.GenericResult, string, error) {
	s, err := b.control.ImageJoinStreaming(ctx,
		pb.ImageJoinStreamingRequest_builder{ImageId: id, Timeout: joinTime, LastEntryId: last}.Build())
	var result *pb.GenericResult
	for err == nil {
		var one *pb.ImageJoinStreamingResponse
		if one, err = s.Recv(); err != nil {
			break
		}
		last = cmp.Or(one.GetEntryId(), last)
		if one.GetResult().GetStatus() != pb.GenericResult_GENERIC_STATUS_UNSPECIFIED {
			result = one.GetResult() // more of its log may follow
		}
		for _, l := range one.GetTaskLogs() {
			log.Add(ctx, l.GetData())
		}
	}
	if errors.Is(err, io.EOF) || result != nil {
		err = nil
	}
	return result, last, err
}

// bring gives the vendor the files of a build by their content, and returns the name of what holds them; "" = it copies
// none. A link to a file is that file there.
func (b *backend) bring(ctx context.Context, from compose.Rendered, x compose.Build) (string, error) {
	if !x.Copies() {
		return "", nil
	}
	files := map[string]*pb.MountFile{}
	links, err := from.EachFile(ctx, x, func(at string, mode uint32, size int64, content io.Reader) error {
		if size > maxFile {
			return extensions.Errorf(extensions.KindUnsupported, "the build's file %s has %d bytes, and at most %d reach %s",
				extensions.Clean(at, 200), size, maxFile, vendor).At("image.build").
				WithRemedy("name it in .dockerignore, fetch it in a RUN, or push the image and name it in image.pull")
		}
		text, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		hash := fmt.Sprintf("%x", sha256.Sum256(text))
		files[at] = pb.MountFile_builder{Filename: at, Sha256Hex: hash, Mode: &mode}.Build()
		known, err := b.control.MountPutFile(ctx, pb.MountPutFileRequest_builder{Sha256Hex: hash}.Build())
		if err == nil && !known.GetExists() {
			_, err = b.control.MountPutFile(ctx, pb.MountPutFileRequest_builder{Sha256Hex: hash, Data: text}.Build())
		}
		return err
	})
	if err != nil {
		return "", err
	}
	for at, target := range links {
		f := proto.CloneOf(files[target])
		f.SetFilename(at)
		files[at] = f
	}
	in := pb.MountGetOrCreateRequest_builder{ObjectCreationType: pb.ObjectCreationType_OBJECT_CREATION_TYPE_EPHEMERAL,
		EnvironmentName: b.environment}
	for _, at := range slices.Sorted(maps.Keys(files)) {
		in.Files = append(in.Files, files[at])
	}
	out, err := b.control.MountGetOrCreate(ctx, in.Build())
	return out.GetMountId(), err
}
