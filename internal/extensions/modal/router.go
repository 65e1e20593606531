package modal

import (
	"context"
	"net/url"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// access is the way to the task of one sandbox.
type access struct {
	task, url string
	jwt       extensions.Secret
	until     time.Time
}

// early is how long before its end a token is no longer used.
const early = 30 * time.Second

// inside is one sandbox, reached by its task's router.
type inside struct {
	seen
	access
	b      *backend
	router pb.TaskCommandRouterClient
}

// enter reaches the router of a sandbox that has a task.
func (b *backend) enter(ctx context.Context, s seen) (*inside, error) {
	a, err := b.accessTo(ctx, s.ref)
	if err != nil {
		return nil, err
	}
	conn, err := b.routerAt(a.url)
	if err != nil {
		return nil, err
	}
	return &inside{seen: s, access: a, b: b, router: pb.NewTaskCommandRouterClient(conn)}, nil
}

// scheduled says why a sandbox has no task yet; "" = it has one.
func (b *backend) scheduled(ctx context.Context, ref string) (string, error) {
	task, err := b.taskOf(ctx, ref)
	if err == nil && task == "" {
		return "it waits for a machine", nil
	}
	return "", err
}

func (b *backend) taskOf(ctx context.Context, ref string) (string, error) {
	soon := float32(0)
	in := pb.SandboxGetTaskIdRequest_builder{SandboxId: ref, Timeout: &soon}.Build()
	get := b.control.SandboxGetTaskIdV2
	if backendOf(ref) == 1 {
		get = b.control.SandboxGetTaskId
	}
	out, err := get(ctx, in)
	if err == nil && out.GetTaskId() == "" && out.HasTaskResult() {
		err = extensions.Errorf(extensions.KindFailed, "it ended before it began: %s", ending(out.GetTaskResult())).
			WithRemedy("look at the sandbox's app at %s, then create it again", vendor)
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
	var jwt string
	if backendOf(ref) == 1 {
		out, err := b.control.TaskGetCommandRouterAccess(ctx, pb.TaskGetCommandRouterAccessRequest_builder{TaskId: a.task}.Build())
		if err != nil {
			return a, err
		}
		jwt, a.url = out.GetJwt(), out.GetUrl()
	} else {
		out, err := b.control.SandboxGetCommandRouterAccess(ctx, pb.SandboxGetCommandRouterAccessRequest_builder{SandboxId: &ref}.Build())
		if err != nil {
			return a, err
		}
		jwt, a.url = out.GetJwt(), out.GetUrl()
	}
	a.jwt, a.until = extensions.NewSecret(jwt), time.Now().Add(untilOf(jwt)-early)
	b.entered.Store(ref, a)
	return a, nil
}

// routerAt returns the connection to one router, which many sandboxes may share. A router that is not encrypted is
// taken only where the control plane is not either, which is on this machine.
func (b *backend) routerAt(address string) (*grpc.ClientConn, error) {
	u, err := webcall.Address(address)
	own, _ := url.Parse(b.serverURL) // it was read before
	if err != nil || u.Scheme != own.Scheme {
		return nil, extensions.Errorf(extensions.KindInternal, "%s names %q as the way to a sandbox", vendor, extensions.Clean(address, 200))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.routers[address]; c != nil {
		return c, nil
	}
	c, err := grpcline.Dial(u, nil)
	if err == nil {
		b.routers[address] = c
	}
	return c, err
}

// ask makes one call to the router and classifies its end. A token that is refused is not used again.
func (i *inside) ask(ctx context.Context, limit time.Duration, method string, do func(context.Context) error) error {
	err := i.b.line.Ask(i.as(ctx), limit, method, do)
	if extensions.IsKind(err, extensions.KindUnauthorized) {
		i.b.entered.Delete(i.ref)
		return extensions.Errorf(extensions.KindUnavailable, "the sandbox does not accept its token: %w", err).WithRemedy("try again")
	}
	return err
}

// as is a context whose calls have the token.
func (i *inside) as(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+i.jwt.Reveal())
}
