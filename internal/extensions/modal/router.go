package modal

import (
	"context"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/metadata"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/held"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/indoors"
)

// access is the way to the task of one sandbox.
type access struct {
	task   string
	router pb.TaskCommandRouterClient
	jwt    extensions.Secret
	until  time.Time
}

// inside is one sandbox, reached by its task's router.
type inside struct {
	seen
	access
	b *backend
}

// inside reaches the inside of a handle's sandbox.
func (b *backend) inside(ctx context.Context, h extensions.Handle) (*inside, error) {
	s, _, err := b.Owned(ctx, h)
	if err != nil {
		return nil, err
	}
	a, err := b.accessTo(ctx, s.ref)
	return &inside{seen: s, access: a, b: b}, err
}

func (b *backend) enter(ctx context.Context, h extensions.Handle) (*indoors.Room, error) {
	i, err := b.inside(ctx, h)
	if err != nil {
		return nil, err
	}
	return &indoors.Room{Ref: i.ref, WorkDir: i.workDir, Run: i.run}, nil
}

// taskOf is a sandbox's task; "" = it waits for a machine.
func (b *backend) taskOf(ctx context.Context, ref string) (string, error) {
	soon := float32(0)
	out, err := b.control.SandboxGetTaskIdV2(ctx, pb.SandboxGetTaskIdRequest_builder{SandboxId: ref, Timeout: &soon}.Build())
	if err == nil && out.GetTaskId() == "" && out.HasTaskResult() {
		err = extensions.Errorf(extensions.KindFailed, "it ended before it started: %s", ending(out.GetTaskResult())).
			WithRemedy("check the sandbox's app at %s, then create it again", vendor)
	}
	return out.GetTaskId(), err
}

// accessTo returns the way to a sandbox's task, asked for once until it ends.
func (b *backend) accessTo(ctx context.Context, ref string) (a access, err error) {
	if known, ok := b.entered.Load(ref); ok && time.Now().Before(known.(access).until) {
		return known.(access), nil
	}
	if a.task, err = b.taskOf(ctx, ref); err != nil {
		return a, err
	}
	if a.task == "" {
		return a, extensions.Errorf(extensions.KindUnavailable, "the sandbox %s waits for a machine", ref).WithRemedy("try again later")
	}
	var way interface {
		GetJwt() string
		GetUrl() string
	}
	if backendOf(ref) == 1 {
		way, err = b.control.TaskGetCommandRouterAccess(ctx, pb.TaskGetCommandRouterAccessRequest_builder{TaskId: a.task}.Build())
	} else {
		way, err = b.control.SandboxGetCommandRouterAccess(ctx, pb.SandboxGetCommandRouterAccessRequest_builder{SandboxId: &ref}.Build())
	}
	if err != nil {
		return a, err
	}
	// A router that is not encrypted is taken only where the control plane is not either, which is on this machine.
	conn, err := b.line.To(way.GetUrl(), nil, nil)
	if err != nil || strings.HasPrefix(way.GetUrl(), "https:") != strings.HasPrefix(b.serverURL, "https:") {
		return a, extensions.Errorf(extensions.KindInternal, "%s gave %q as a sandbox's address", vendor, extensions.Clean(way.GetUrl(), 200))
	}
	a.router, a.jwt = pb.NewTaskCommandRouterClient(conn), extensions.NewSecret(way.GetJwt())
	a.until = time.Now().Add(held.Life(way.GetJwt(), unsaid) - early)
	b.entered.Store(ref, a)
	return a, nil
}

// as is a context whose calls to the router have the sandbox's token.
func (i *inside) as(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+i.jwt.Reveal())
}

// fresh is the error of a call to the router. A token that is refused is not used again.
func (i *inside) fresh(err error) error {
	if extensions.IsKind(err, extensions.KindUnauthorized) {
		i.b.entered.Delete(i.ref)
		return extensions.Errorf(extensions.KindUnavailable, "the sandbox does not accept its token: %w", err).WithRemedy("try again")
	}
	return err
}
