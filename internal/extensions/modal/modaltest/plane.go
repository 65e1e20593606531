package modaltest

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// plane is the control plane.
type plane struct {
	pb.UnimplementedModalClientServer
	v *Vendor
	f *front
}

var (
	objectName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)
	tagText    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
)

func refuse(code codes.Code, format string, args ...any) error {
	return status.Errorf(code, format, args...)
}

// jwt is one that says nothing but whose it is, until the year 2100.
func jwt(of string) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"sub":%q,"exp":4102444800}`, of)) + "." + part(of)
}

func session(v *Vendor) string { return jwt("session of " + v.TokenID) }

// AuthTokenGet implements pb.ModalClientServer.
func (p plane) AuthTokenGet(context.Context, *pb.AuthTokenGetRequest) (*pb.AuthTokenGetResponse, error) {
	return pb.AuthTokenGetResponse_builder{Token: session(p.v)}.Build(), nil
}

// EnvironmentGetOrCreate implements pb.ModalClientServer.
func (p plane) EnvironmentGetOrCreate(_ context.Context, in *pb.EnvironmentGetOrCreateRequest) (*pb.EnvironmentGetOrCreateResponse, error) {
	return pb.EnvironmentGetOrCreateResponse_builder{EnvironmentId: "en-" + in.GetDeploymentName(), Metadata: pb.EnvironmentMetadata_builder{
		Name: in.GetDeploymentName(), Settings: pb.EnvironmentSettings_builder{ImageBuilderVersion: "2025.06"}.Build()}.Build()}.Build(), nil
}

// AppGetOrCreate implements pb.ModalClientServer.
func (p plane) AppGetOrCreate(_ context.Context, in *pb.AppGetOrCreateRequest) (*pb.AppGetOrCreateResponse, error) {
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	if !objectName.MatchString(in.GetAppName()) || in.GetEnvironmentName() == "" {
		return nil, refuse(codes.InvalidArgument, "app %q in environment %q", in.GetAppName(), in.GetEnvironmentName())
	}
	id := p.v.apps[in.GetAppName()]
	if id == "" {
		if in.GetObjectCreationType() != pb.ObjectCreationType_OBJECT_CREATION_TYPE_CREATE_IF_MISSING {
			return nil, refuse(codes.NotFound, "no app %s", in.GetAppName())
		}
		id = "ap-" + random(11)
		p.v.apps[in.GetAppName()] = id
	}
	return pb.AppGetOrCreateResponse_builder{AppId: id}.Build(), nil
}

// SecretGetOrCreate implements pb.ModalClientServer. The fake keeps no secret.
func (p plane) SecretGetOrCreate(context.Context, *pb.SecretGetOrCreateRequest) (*pb.SecretGetOrCreateResponse, error) {
	return pb.SecretGetOrCreateResponse_builder{SecretId: "st-" + random(11)}.Build(), nil
}

// the sandbox of a call at one backend.
func (p plane) the(id string, backend int) (*sandbox, error) {
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	s := p.v.sandboxes[id]
	if s == nil || s.backend != backend {
		return nil, refuse(codes.NotFound, "Sandbox with ID %s not found", id)
	}
	return s, nil
}

func (p plane) wait(in *pb.SandboxWaitRequest, backend int) (*pb.SandboxWaitResponse, error) {
	s, err := p.the(in.GetSandboxId(), backend)
	if err != nil {
		return nil, err
	}
	return pb.SandboxWaitResponse_builder{Result: s.shown()}.Build(), nil
}

// SandboxWait implements pb.ModalClientServer.
func (p plane) SandboxWait(_ context.Context, in *pb.SandboxWaitRequest) (*pb.SandboxWaitResponse, error) {
	return p.wait(in, 1)
}

// SandboxWaitV2 implements pb.ModalClientServer.
func (p plane) SandboxWaitV2(_ context.Context, in *pb.SandboxWaitRequest) (*pb.SandboxWaitResponse, error) {
	return p.wait(in, 2)
}

func (p plane) tags(in *pb.SandboxTagsGetRequest, backend int) (*pb.SandboxTagsGetResponse, error) {
	s, err := p.the(in.GetSandboxId(), backend)
	if err != nil {
		return nil, err
	}
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	return pb.SandboxTagsGetResponse_builder{Tags: slices.Clone(s.tags)}.Build(), nil
}

// SandboxTagsGet implements pb.ModalClientServer.
func (p plane) SandboxTagsGet(_ context.Context, in *pb.SandboxTagsGetRequest) (*pb.SandboxTagsGetResponse, error) {
	return p.tags(in, 1)
}

// SandboxTagsGetV2 implements pb.ModalClientServer.
func (p plane) SandboxTagsGetV2(_ context.Context, in *pb.SandboxTagsGetRequest) (*pb.SandboxTagsGetResponse, error) {
	return p.tags(in, 2)
}

func (p plane) terminate(in *pb.SandboxTerminateRequest, backend int) (*pb.SandboxTerminateResponse, error) {
	s, err := p.the(in.GetSandboxId(), backend)
	if err != nil {
		return nil, err
	}
	if err := s.finish(pb.GenericResult_GENERIC_STATUS_TERMINATED); err != nil {
		p.v.t.Errorf("the end of %s: %v", s.id, err)
	}
	return &pb.SandboxTerminateResponse{}, nil
}

// SandboxTerminate implements pb.ModalClientServer.
func (p plane) SandboxTerminate(_ context.Context, in *pb.SandboxTerminateRequest) (*pb.SandboxTerminateResponse, error) {
	return p.terminate(in, 1)
}

// SandboxTerminateV2 implements pb.ModalClientServer.
func (p plane) SandboxTerminateV2(_ context.Context, in *pb.SandboxTerminateRequest) (*pb.SandboxTerminateResponse, error) {
	return p.terminate(in, 2)
}

func (p plane) named(in *pb.SandboxGetFromNameRequest, backend int) (*pb.SandboxGetFromNameResponse, error) {
	p.v.mu.Lock()
	app := p.v.apps[in.GetAppName()]
	p.v.mu.Unlock()
	for _, s := range p.v.all() {
		if app != "" && s.app == app && s.backend == backend && s.asked.GetName() == in.GetSandboxName() && s.lives() {
			return pb.SandboxGetFromNameResponse_builder{SandboxId: s.id}.Build(), nil
		}
	}
	return nil, refuse(codes.NotFound, "Sandbox with name %s not found", in.GetSandboxName())
}

// SandboxGetFromName implements pb.ModalClientServer.
func (p plane) SandboxGetFromName(_ context.Context, in *pb.SandboxGetFromNameRequest) (*pb.SandboxGetFromNameResponse, error) {
	return p.named(in, 1)
}

// SandboxGetFromNameV2 implements pb.ModalClientServer.
func (p plane) SandboxGetFromNameV2(_ context.Context, in *pb.SandboxGetFromNameRequest) (*pb.SandboxGetFromNameResponse, error) {
	return p.named(in, 2)
}

func (p plane) task(in *pb.SandboxGetTaskIdRequest, backend int) (*pb.SandboxGetTaskIdResponse, error) {
	s, err := p.the(in.GetSandboxId(), backend)
	if err != nil {
		return nil, err
	}
	return s.taskNow(), nil
}

// SandboxGetTaskId implements pb.ModalClientServer.
func (p plane) SandboxGetTaskId(_ context.Context, in *pb.SandboxGetTaskIdRequest) (*pb.SandboxGetTaskIdResponse, error) {
	return p.task(in, 1)
}

// SandboxGetTaskIdV2 implements pb.ModalClientServer.
func (p plane) SandboxGetTaskIdV2(_ context.Context, in *pb.SandboxGetTaskIdRequest) (*pb.SandboxGetTaskIdResponse, error) {
	return p.task(in, 2)
}

// SandboxGetCommandRouterAccess implements pb.ModalClientServer.
func (p plane) SandboxGetCommandRouterAccess(_ context.Context,
	in *pb.SandboxGetCommandRouterAccessRequest) (*pb.SandboxGetCommandRouterAccessResponse, error) {
	s, err := p.the(in.GetSandboxId(), 2)
	if err != nil {
		return nil, err
	}
	return pb.SandboxGetCommandRouterAccessResponse_builder{Jwt: jwt(s.task), Url: p.f.router()}.Build(), nil
}

// TaskGetCommandRouterAccess implements pb.ModalClientServer.
func (p plane) TaskGetCommandRouterAccess(_ context.Context,
	in *pb.TaskGetCommandRouterAccessRequest) (*pb.TaskGetCommandRouterAccessResponse, error) {
	for _, s := range p.v.all() {
		if s.task == in.GetTaskId() && s.backend == 1 {
			return pb.TaskGetCommandRouterAccessResponse_builder{Jwt: jwt(s.task), Url: p.f.router()}.Build(), nil
		}
	}
	return nil, refuse(codes.NotFound, "no task %s", in.GetTaskId())
}
