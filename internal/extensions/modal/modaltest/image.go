package modaltest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// image is one that was built, or made of a sandbox. Vendor.mu guards it.
type image struct {
	done, failed bool
	folder       string // of a snapshot
	names        []string
	made         float64
}

// NoImage is the name of an image that no registry has.
const NoImage = "registry.test/no-such:1"

// ImageGetOrCreate implements pb.ModalClientServer. The build goes on until somebody waits for it.
func (p plane) ImageGetOrCreate(_ context.Context, in *pb.ImageGetOrCreateRequest) (*pb.ImageGetOrCreateResponse, error) {
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	lines := in.GetImage().GetDockerfileCommands()
	if len(lines) == 0 || !strings.HasPrefix(lines[0], "FROM ") || in.GetBuilderVersion() == "" || in.GetAppId() == "" {
		return nil, refuse(codes.InvalidArgument, "image of %q by builder %q", lines, in.GetBuilderVersion())
	}
	for _, base := range in.GetImage().GetBaseImages() {
		if b := p.v.images[base.GetImageId()]; b == nil || !b.done {
			return nil, refuse(codes.NotFound, "Image %s not found", base.GetImageId())
		}
	}
	plain := proto.CloneOf(in.GetImage())
	plain.SetImageRegistryConfig(nil)
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(plain)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	id := "im-" + hex.EncodeToString(sum[:])[:22]
	i := p.v.images[id]
	if i == nil || i.failed {
		i = &image{failed: strings.Contains(lines[0], NoImage)}
		p.v.images[id] = i
	}
	out := pb.ImageGetOrCreateResponse_builder{ImageId: id}
	if i.done {
		out.Result = pb.GenericResult_builder{Status: pb.GenericResult_GENERIC_STATUS_SUCCESS}.Build()
	}
	return out.Build(), nil
}

// ImageJoinStreaming implements pb.ModalClientServer.
func (p plane) ImageJoinStreaming(in *pb.ImageJoinStreamingRequest, out grpc.ServerStreamingServer[pb.ImageJoinStreamingResponse]) error {
	p.v.mu.Lock()
	i := p.v.images[in.GetImageId()]
	result := pb.GenericResult_builder{Status: pb.GenericResult_GENERIC_STATUS_SUCCESS}
	if i != nil {
		if i.done = !i.failed; i.failed {
			result = pb.GenericResult_builder{Status: pb.GenericResult_GENERIC_STATUS_FAILURE, Exception: "manifest unknown"}
		}
	}
	p.v.mu.Unlock()
	if i == nil {
		return refuse(codes.NotFound, "Image %s not found", in.GetImageId())
	}
	return out.Send(pb.ImageJoinStreamingResponse_builder{Result: result.Build(), EntryId: "1-0", Eof: true}.Build())
}

// ImageFromId implements pb.ModalClientServer.
func (p plane) ImageFromId(_ context.Context, in *pb.ImageFromIdRequest) (*pb.ImageFromIdResponse, error) {
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	if p.v.images[in.GetImageId()] == nil {
		return nil, refuse(codes.NotFound, "Image %s not found", in.GetImageId())
	}
	return pb.ImageFromIdResponse_builder{ImageId: in.GetImageId()}.Build(), nil
}

// ImageDelete implements pb.ModalClientServer.
func (p plane) ImageDelete(ctx context.Context, in *pb.ImageDeleteRequest) (*emptypb.Empty, error) {
	if _, err := p.ImageFromId(ctx, pb.ImageFromIdRequest_builder{ImageId: in.GetImageId()}.Build()); err != nil {
		return nil, err
	}
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	delete(p.v.images, in.GetImageId())
	return &emptypb.Empty{}, nil
}

// ImagePublish implements pb.ModalClientServer.
func (p plane) ImagePublish(_ context.Context, in *pb.ImagePublishRequest) (*pb.ImagePublishResponse, error) {
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	i := p.v.images[in.GetImageId()]
	name, tag, ok := strings.Cut(in.GetTag(), ":")
	switch {
	case i == nil:
		return nil, refuse(codes.NotFound, "Image %s not found", in.GetImageId())
	case !ok || !objectName.MatchString(name) || !objectName.MatchString(tag) || in.GetAllowPublic():
		return nil, refuse(codes.InvalidArgument, "name %q", in.GetTag())
	}
	for _, other := range p.v.images {
		other.names = slices.DeleteFunc(other.names, func(n string) bool { return n == in.GetTag() })
	}
	i.names = append(i.names, in.GetTag())
	return pb.ImagePublishResponse_builder{ImageId: in.GetImageId()}.Build(), nil
}

// ImageListTags implements pb.ModalClientServer.
func (p plane) ImageListTags(_ context.Context, in *pb.ImageListTagsRequest) (*pb.ImageListTagsResponse, error) {
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	var items []*pb.ImageListTagsItem
	for id, i := range p.v.images {
		for _, name := range i.names {
			if strings.HasPrefix(name, in.GetTagPrefix()) && (in.GetImageId() == "" || in.GetImageId() == id) {
				items = append(items, pb.ImageListTagsItem_builder{Tag: name, ImageId: id, CreatedAt: i.made}.Build())
			}
		}
	}
	return pb.ImageListTagsResponse_builder{Items: items}.Build(), nil
}

// keep makes an image of a sandbox's files; the same snapshot is made once.
func (v *Vendor) keep(s *sandbox, snapshot string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	sum := sha256.Sum256([]byte(snapshot))
	id := "im-" + hex.EncodeToString(sum[:])[:22]
	if v.images[id] != nil {
		return id, nil
	}
	if err := s.Freeze(); err != nil {
		return "", err
	}
	v.serial++
	kept, err := v.shelf.Copy(fmt.Sprintf("snapshot%d", v.serial), s.Root, homes)
	if err != nil {
		return "", err
	}
	v.images[id] = &image{done: true, folder: kept.Root, made: float64(v.clock.Now().UnixMilli()) / 1e3}
	return id, s.Thaw()
}
