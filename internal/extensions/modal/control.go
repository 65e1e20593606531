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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// seen is what the vendor tells of one sandbox now: the tags of a sandbox of ours, and how it ended.
type seen struct {
	ref        string
	id         extensions.ID // "" = it is another's
	generation int64
	workDir    string
	ends       time.Time
	result     *pb.GenericResult // nil = it lives
}

// look reads the sandbox of a handle, by our id as its name where a lost answer left no more.
func (b *backend) look(ctx context.Context, h extensions.Handle) (s seen, err error) {
	if err := checkHandle(h); err != nil {
		return s, err
	}
	ref := h.Ref
	if ref == "" {
		if ref, err = b.byName(ctx, h.ID); err != nil {
			return s, err
		}
	}
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
	s = b.read(ref, tags.GetTags())
	if r := wait.GetResult(); r.GetStatus() != pb.GenericResult_GENERIC_STATUS_UNSPECIFIED {
		s.result = r
	}
	return s, nil
}

// byName looks up the live sandbox that has our id as its name, at both backends. KindNotFound is both backends' word.
func (b *backend) byName(ctx context.Context, id extensions.ID) (string, error) {
	in := pb.SandboxGetFromNameRequest_builder{SandboxName: string(id), AppName: b.app, EnvironmentName: b.environment}.Build()
	out, err := b.control.SandboxGetFromNameV2(ctx, in)
	if extensions.IsKind(err, extensions.KindNotFound) {
		out, err = b.control.SandboxGetFromName(ctx, in)
	}
	return sandboxName(out.GetSandboxId(), err)
}

// sandboxName refuses what cannot be a sandbox's.
func sandboxName(ref string, err error) (string, error) {
	if err == nil && !refName.MatchString(ref) {
		err = extensions.Errorf(extensions.KindIndeterminate, "%s names %q as a sandbox", vendor, extensions.Clean(ref, 80))
	}
	return ref, err
}

// application returns the app that has the sandboxes; KindNotFound if it is missing and shall not be made.
func (b *backend) application(ctx context.Context, make bool) (*sdk.App, error) {
	ctx, heard := grpcline.Overhear(ctx)
	a, err := b.sdk.Apps.FromName(ctx, b.app, &sdk.AppFromNameParams{Environment: b.environment, CreateIfMissing: make})
	return a, heard(err)
}

// list reads the account's live sandboxes at both backends, page by page. V2's list has those of both, as the SDK says;
// V1's own is asked too, for nobody promises it.
func (b *backend) list(ctx context.Context) (all []seen, err error) {
	app, err := b.application(ctx, false)
	switch {
	case extensions.IsKind(err, extensions.KindNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	ours := []*pb.SandboxTag{pb.SandboxTag_builder{TagName: extensions.LabelAccount, TagValue: labels.Value(b.account)}.Build()}
	for _, page := range []func(context.Context, *pb.SandboxListRequest, ...grpc.CallOption) (*pb.SandboxListResponse, error){
		b.control.SandboxListV2, b.control.SandboxList,
	} {
		if err := rest.Pages(vendor, func(before string) (string, error) {
			at, _ := strconv.ParseFloat(before, 64) // "" is the newest
			out, err := page(ctx, pb.SandboxListRequest_builder{AppId: app.AppID, EnvironmentName: b.environment, BeforeTimestamp: at,
				Tags: ours}.Build())
			if err != nil || len(out.GetSandboxes()) == 0 {
				return "", err
			}
			for _, i := range out.GetSandboxes() {
				done := i.GetTaskInfo().GetFinishedAt() > 0 // the list lags
				if !done && refName.MatchString(i.GetId()) {
					all = append(all, b.read(i.GetId(), i.GetTags()))
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
