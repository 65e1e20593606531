package modal

import (
	"context"
	"strconv"

	sdk "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// seen is what the vendor tells of one sandbox now.
type seen struct {
	told
	ref    string
	result *pb.GenericResult // nil = it lives
}

// get reads one sandbox. KindNotFound is the vendor's own word, and KindConflict says that it is another one's.
func (b *backend) get(ctx context.Context, ref string) (s seen, err error) {
	var wait *pb.SandboxWaitResponse
	var tags *pb.SandboxTagsGetResponse
	g, together := errgroup.WithContext(ctx)
	v1 := backendOf(ref) == 1
	g.Go(func() (err error) {
		in := pb.SandboxWaitRequest_builder{SandboxId: ref}.Build()
		if v1 {
			wait, err = b.control.SandboxWait(together, in)
		} else {
			wait, err = b.control.SandboxWaitV2(together, in)
		}
		return err
	})
	g.Go(func() (err error) {
		in := pb.SandboxTagsGetRequest_builder{SandboxId: ref}.Build()
		if v1 {
			tags, err = b.control.SandboxTagsGet(together, in)
		} else {
			tags, err = b.control.SandboxTagsGetV2(together, in)
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return s, err
	}
	s.ref = ref
	if r := wait.GetResult(); r.GetStatus() != pb.GenericResult_GENERIC_STATUS_UNSPECIFIED {
		s.result = r
	}
	t, ok := b.ours(tags.GetTags())
	if !ok {
		return s, foreign(ref)
	}
	s.told = t
	return s, nil
}

func foreign(ref string) error {
	return extensions.Errorf(extensions.KindConflict, "the sandbox %s at %s does not carry this sandbox's id", ref, vendor).
		WithRemedy("check it at %s; sandboxer does not own it", vendor)
}

// owned reads the sandbox of a handle and refuses one that carries another id. One that has ended is KindNotFound.
func (b *backend) owned(ctx context.Context, h extensions.Handle) (seen, error) {
	ref, err := b.ref(ctx, h)
	if err != nil {
		return seen{}, err
	}
	s, err := b.get(ctx, ref)
	switch {
	case err != nil:
		return s, err
	case s.id != h.ID:
		return s, foreign(ref)
	case s.result != nil:
		return s, extensions.Errorf(extensions.KindNotFound, "the sandbox %s has ended: %s", ref, ending(s.result))
	}
	return s, nil
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

// named looks up the live sandbox that has our id as its name, at both backends. KindNotFound is both backends' word.
func (b *backend) named(ctx context.Context, id extensions.ID) (string, error) {
	in := pb.SandboxGetFromNameRequest_builder{SandboxName: string(id), AppName: b.app, EnvironmentName: b.environment}.Build()
	out, err := b.control.SandboxGetFromNameV2(ctx, in)
	if extensions.IsKind(err, extensions.KindNotFound) {
		out, err = b.control.SandboxGetFromName(ctx, in)
	}
	if err != nil {
		return "", err
	}
	if !refName.MatchString(out.GetSandboxId()) {
		return "", extensions.Errorf(extensions.KindInternal, "%s names %q as a sandbox", vendor, extensions.Clean(out.GetSandboxId(), 80))
	}
	return out.GetSandboxId(), nil
}

// application returns the app that has the sandboxes; KindNotFound if it is missing and shall not be made.
func (b *backend) application(ctx context.Context, make bool) (*sdk.App, error) {
	a, err := b.sdk.Apps.FromName(ctx, b.app, &sdk.AppFromNameParams{Environment: b.environment, CreateIfMissing: make})
	if err == nil && a.AppID == "" {
		err = extensions.Errorf(extensions.KindInternal, "%s names no app", vendor)
	}
	if e := known(err); e != nil {
		return nil, e
	}
	return a, err
}

// known is err, or what an error of the SDK's own means.
func known(err error) error {
	if err == nil || extensions.KindOf(err) != extensions.KindInternal {
		return err
	}
	if e := ofSDK(err); e != nil {
		return e
	}
	return err
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
	for _, page := range []func(context.Context, *pb.SandboxListRequest) (*pb.SandboxListResponse, error){
		func(ctx context.Context, in *pb.SandboxListRequest) (*pb.SandboxListResponse, error) {
			return b.control.SandboxListV2(ctx, in)
		},
		func(ctx context.Context, in *pb.SandboxListRequest) (*pb.SandboxListResponse, error) {
			return b.control.SandboxList(ctx, in)
		},
	} {
		err := rest.Pages(vendor, func(before string) (string, error) {
			at, _ := strconv.ParseFloat(before, 64) // "" is the newest
			out, err := page(ctx, pb.SandboxListRequest_builder{AppId: app.AppID, EnvironmentName: b.environment, BeforeTimestamp: at,
				Tags: []*pb.SandboxTag{tag(extensions.LabelAccount, b.account)}}.Build())
			if err != nil || len(out.GetSandboxes()) == 0 {
				return "", err
			}
			for _, s := range out.GetSandboxes() {
				t, ok := b.ours(s.GetTags())
				done := s.GetTaskInfo().GetFinishedAt() > 0 // the list lags
				if ok && !done && !has[s.GetId()] && refName.MatchString(s.GetId()) {
					has[s.GetId()] = true
					all = append(all, seen{told: t, ref: s.GetId()})
				}
			}
			last := out.GetSandboxes()[len(out.GetSandboxes())-1]
			return strconv.FormatFloat(last.GetCreatedAt(), 'g', -1, 64), nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
