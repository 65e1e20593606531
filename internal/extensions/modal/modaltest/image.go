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
	done, failed, building bool
	ended                  chan struct{} // closed once it is done or has failed
	asked                  *pb.Image
	from                   *image // what it starts from; empty for one of a registry
	mount                  []*pb.MountFile
	log                    string
	snapshot               bool
	folder                 string // its files; "" = as a new sandbox has them
	env                    map[string]string
	names                  []string
	made                   float64
}

// NoImage is the name of an image that no registry has.
const NoImage = "registry.test/no-such:1"

// base is the image that a Dockerfile's first stage starts from.
func base(lines []string) string {
	for _, line := range lines {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "FROM" {
			return words[1]
		}
	}
	return ""
}

// ImageGetOrCreate implements pb.ModalClientServer. The build goes on until somebody waits for it.
func (p plane) ImageGetOrCreate(_ context.Context, in *pb.ImageGetOrCreateRequest) (*pb.ImageGetOrCreateResponse, error) {
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	lines := in.GetImage().GetDockerfileCommands()
	if base(lines) == "" || in.GetBuilderVersion() == "" || in.GetAppId() == "" {
		return nil, refuse(codes.InvalidArgument, "image of %q by builder %q", lines, in.GetBuilderVersion())
	}
	from := &image{}
	for _, one := range in.GetImage().GetBaseImages() {
		b := p.v.images[one.GetImageId()]
		if b == nil || !b.done {
			return nil, refuse(codes.NotFound, "Image %s not found", one.GetImageId())
		}
		if base(lines) != one.GetDockerTag() {
			return nil, refuse(codes.InvalidArgument, "nothing starts from %q", one.GetDockerTag())
		}
		from = b
	}
	mount, known := p.v.mounts[in.GetImage().GetContextMountId()]
	if in.GetImage().GetContextMountId() != "" && !known {
		return nil, refuse(codes.NotFound, "Mount %s not found", in.GetImage().GetContextMountId())
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
		i = &image{asked: in.GetImage(), from: from, mount: mount, ended: make(chan struct{})}
		p.v.images[id] = i
	}
	out := pb.ImageGetOrCreateResponse_builder{ImageId: id}
	if i.done {
		out.Result = pb.GenericResult_builder{Status: pb.GenericResult_GENERIC_STATUS_SUCCESS}.Build()
	}
	return out.Build(), nil
}

// ImageJoinStreaming implements pb.ModalClientServer. Who is first builds it, and the others wait.
func (p plane) ImageJoinStreaming(in *pb.ImageJoinStreamingRequest, out grpc.ServerStreamingServer[pb.ImageJoinStreamingResponse]) error {
	p.v.mu.Lock()
	i := p.v.images[in.GetImageId()]
	first := i != nil && !i.building && !i.done
	if first {
		i.building = true
	}
	p.v.mu.Unlock()
	if i == nil {
		return refuse(codes.NotFound, "Image %s not found", in.GetImageId())
	}
	if first {
		p.v.build(i)
	}
	select {
	case <-i.ended:
	case <-out.Context().Done():
		return out.Context().Err()
	}
	result := pb.GenericResult_builder{Status: pb.GenericResult_GENERIC_STATUS_SUCCESS}
	p.v.mu.Lock()
	log := i.log
	if i.failed {
		result = pb.GenericResult_builder{Status: pb.GenericResult_GENERIC_STATUS_FAILURE, Exception: "the build failed"}
	}
	p.v.mu.Unlock()
	if err := out.Send(pb.ImageJoinStreamingResponse_builder{TaskLogs: []*pb.TaskLogs{pb.TaskLogs_builder{Data: log}.Build()},
		EntryId: "1-0"}.Build()); err != nil {
		return err
	}
	return out.Send(pb.ImageJoinStreamingResponse_builder{Result: result.Build(), EntryId: "2-0", Eof: true}.Build())
}

func (v *Vendor) build(i *image) {
	log, err := "manifest unknown\n", errNoSuch
	if !strings.Contains(base(i.asked.GetDockerfileCommands()), NoImage) {
		log, err = v.carryOut(i)
	}
	if err != nil {
		log += err.Error() + "\n"
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	i.done, i.failed, i.log = err == nil, err != nil, log
	close(i.ended)
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
	v.images[id] = &image{done: true, snapshot: true, env: s.env, folder: kept.Root, made: float64(v.clock.Now().UnixMilli()) / 1e3}
	return id, s.Thaw()
}
