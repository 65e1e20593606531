package modal

import (
	"context"
	"strconv"
	"time"

	sdk "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// seen is what the vendor tells of one sandbox now: the tags of a sandbox of ours, and how it ended.
type seen struct {
	ref        string
	id         extensions.ID
	generation int64
	workDir    string
	ends       time.Time
	result     *pb.GenericResult // nil = it lives
}

// get reads one sandbox. KindNotFound is the vendor's own word, and KindConflict says that it is another one's.
func (b *backend) get(ctx context.Context, ref string) (s seen, err error) {
	var wait *pb.SandboxWaitResponse
	var tags *pb.SandboxTagsGetResponse
	g, together := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		wait, err = b.control.SandboxWaitV2(together, pb.SandboxWaitRequest_builder{SandboxId: ref}.Build())
		return err
	})
	g.Go(func() (err error) {
		tags, err = b.control.SandboxTagsGetV2(together, pb.SandboxTagsGetRequest_builder{SandboxId: ref}.Build())
		return err
	})
	if err := g.Wait(); err != nil {
		return s, err
	}
	s, ours := b.ours(ref, tags.GetTags())
	if !ours {
		return s, foreign(ref)
	}
	if r := wait.GetResult(); r.GetStatus() != pb.GenericResult_GENERIC_STATUS_UNSPECIFIED {
		s.result = r
	}
	return s, nil
}

func foreign(ref string) error {
	return extensions.Errorf(extensions.KindConflict, "the sandbox %s at %s does not carry this sandbox's id", ref, vendor).
		WithRemedy("check it at %s; sandboxer does not own it", vendor)
}

// its reads the sandbox of a handle, alive or not, and refuses one that carries another id.
func (b *backend) its(ctx context.Context, h extensions.Handle) (s seen, err error) {
	if err := checkHandle(h); err != nil {
		return s, err
	}
	ref := h.Ref
	if ref == "" { // a lost answer left only our id
		if ref, err = b.byName(ctx, h.ID); err != nil {
			return s, err
		}
	}
	if s, err = b.get(ctx, ref); err == nil && s.id != h.ID {
		err = foreign(ref)
	}
	return s, err
}

// owned is its for a sandbox that lives. One that has ended is KindNotFound.
func (b *backend) owned(ctx context.Context, h extensions.Handle) (seen, error) {
	s, err := b.its(ctx, h)
	if err == nil && s.result != nil {
		err = extensions.Errorf(extensions.KindNotFound, "the sandbox %s has ended: %s", s.ref, ending(s.result))
	}
	return s, err
}

// ending says how a sandbox ended.
func ending(r *pb.GenericResult) string {
	switch r.GetStatus() { //nolint:exhaustive // the others have words of their own
	case pb.GenericResult_GENERIC_STATUS_TIMEOUT:
		return "its time was over"
	case pb.GenericResult_GENERIC_STATUS_IDLE_TIMEOUT:
		return vendor + " ended it because it was idle"
	case pb.GenericResult_GENERIC_STATUS_TERMINATED:
		return "it was terminated"
	case pb.GenericResult_GENERIC_STATUS_MEMORY_MANAGER_EVICTION:
		return vendor + " ended it for want of memory"
	}
	return extensions.Clean(r.GetStatus().String()+" "+r.GetException(), maxWords)
}

// byName looks up the live sandbox that has our id as its name, at both backends. KindNotFound is both backends' word.
func (b *backend) byName(ctx context.Context, id extensions.ID) (string, error) {
	in := pb.SandboxGetFromNameRequest_builder{SandboxName: string(id), AppName: b.app, EnvironmentName: b.environment}.Build()
	out, err := b.control.SandboxGetFromNameV2(ctx, in)
	if extensions.IsKind(err, extensions.KindNotFound) {
		out, err = b.control.SandboxGetFromName(ctx, in)
	}
	if err == nil && !refName.MatchString(out.GetSandboxId()) {
		err = extensions.Errorf(extensions.KindInternal, "%s names %q as a sandbox", vendor, extensions.Clean(out.GetSandboxId(), 80))
	}
	return out.GetSandboxId(), err
}

// application returns the app that has the sandboxes; KindNotFound if it is missing and shall not be made.
func (b *backend) application(ctx context.Context, make bool) (*sdk.App, error) {
	a, err := b.sdk.Apps.FromName(ctx, b.app, &sdk.AppFromNameParams{Environment: b.environment, CreateIfMissing: make})
	if err == nil && a.AppID == "" {
		err = extensions.Errorf(extensions.KindInternal, "%s names no app", vendor)
	}
	return a, known(err)
}

// list reads the account's live sandboxes at both backends, page by page. V2's list has those of both, as the SDK says;
// V1's own is asked too, for nobody promises it.
func (b *backend) list(ctx context.Context) (all []seen, err error) {
	app, err := b.application(ctx, false)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, page := range []func(context.Context, *pb.SandboxListRequest, ...grpc.CallOption) (*pb.SandboxListResponse, error){
		b.control.SandboxListV2, b.control.SandboxList,
	} {
		if err := rest.Pages(vendor, func(before string) (string, error) {
			at, _ := strconv.ParseFloat(before, 64) // "" is the newest
			out, err := page(ctx, pb.SandboxListRequest_builder{AppId: app.AppID, EnvironmentName: b.environment, BeforeTimestamp: at,
				Tags: []*pb.SandboxTag{tag(extensions.LabelAccount, b.account)}}.Build())
			if err != nil || len(out.GetSandboxes()) == 0 {
				return "", err
			}
			for _, i := range out.GetSandboxes() {
				s, ok := b.ours(i.GetId(), i.GetTags())
				done := i.GetTaskInfo().GetFinishedAt() > 0 // the list lags
				if ok && !done && !has[s.ref] && refName.MatchString(s.ref) {
					has[s.ref] = true
					all = append(all, s)
				}
			}
			last := out.GetSandboxes()[len(out.GetSandboxes())-1]
			return strconv.FormatFloat(last.GetCreatedAt(), 'g', -1, 64), nil
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}
