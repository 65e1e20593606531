package modal_test

import (
	"strings"
	"testing"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/grpctest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal/modaltest"
)

// Each refusal of a create says what the engine may do next, and after each the same create makes one sandbox.
func TestWhatACreateHears(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	code := func(c codes.Code) error { return status.Error(c, "said "+v.TokenSecret) }
	for name, c := range map[string]struct {
		fault grpctest.Fault
		kind  extensions.Kind
		left  bool // a handle remains
	}{
		"a broken connection before":    {grpctest.Fault{}, extensions.KindIndeterminate, true},
		"a lost answer":                 {grpctest.Fault{When: grpctest.After}, extensions.KindIndeterminate, true},
		"unavailable before":            {grpctest.Fault{Err: code(codes.Unavailable)}, extensions.KindIndeterminate, true},
		"unavailable after":             {grpctest.Fault{Err: code(codes.Unavailable), When: grpctest.After}, extensions.KindIndeterminate, true},
		"internal after":                {grpctest.Fault{Err: code(codes.Internal), When: grpctest.After}, extensions.KindIndeterminate, true},
		"exhausted":                     {grpctest.Fault{Err: code(codes.ResourceExhausted)}, extensions.KindExhausted, false},
		"exhausted, and it exists":      {grpctest.Fault{Err: code(codes.ResourceExhausted), When: grpctest.After}, extensions.KindIndeterminate, true},
		"throttled":                     {grpctest.Fault{Err: modaltest.Throttled(7)}, extensions.KindUnavailable, false},
		"not allowed":                   {grpctest.Fault{Err: code(codes.PermissionDenied)}, extensions.KindUnauthorized, false},
		"invalid":                       {grpctest.Fault{Err: code(codes.InvalidArgument)}, extensions.KindInvalid, false},
		"invalid, and it exists":        {grpctest.Fault{Err: code(codes.InvalidArgument), When: grpctest.After}, extensions.KindIndeterminate, true},
		"the image is gone":             {grpctest.Fault{Err: code(codes.NotFound)}, extensions.KindUnavailable, false},
		"the name of something else":    {grpctest.Fault{When: grpctest.Never, Change: otherName}, extensions.KindIndeterminate, true},
		"a storm, and nothing is known": {grpctest.Fault{Err: code(codes.Aborted)}, extensions.KindIndeterminate, true},
	} {
		c.fault.On = "SandboxCreateV2"
		v.Inject(c.fault)
		spec := exttest.Spec(t, cfg)
		h, _, err := b.Provision(t.Context(), spec)
		if !extensions.IsKind(err, c.kind) || (h.ID == spec.ID) != c.left || err != nil && strings.Contains(err.Error(), v.TokenSecret) {
			t.Errorf("%s: handle %q, %v", name, h.Encode(), err)
		}
		h, _, err = b.Provision(t.Context(), spec)
		if err != nil || h.Ref == "" || len(v.Sandboxes()) != 1 {
			t.Errorf("%s, and again: handle %q, %v, %d sandboxes", name, h.Encode(), err, len(v.Sandboxes()))
		}
		_, err = b.Teardown(t.Context(), h)
		must(t, err)
	}
}

// A create without any time would live for the SDK's own default.
func TestACreateWhoseDeadlinePassesWhileItWaitsIsNotSent(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	v.Inject(grpctest.Fault{On: "AppGetOrCreate", When: grpctest.Never, Change: func(proto.Message) { time.Sleep(3200 * time.Millisecond) }})
	spec := exttest.Spec(t, cfg)
	spec.Deadline = time.Now().Add(3 * time.Second)
	h, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindUnavailable) || extensions.RemedyOf(err) == "" || !h.IsZero() || len(v.Sandboxes()) > 0 {
		t.Errorf("%s, %v", h.Encode(), err)
	}
}

func otherName(answer proto.Message) { answer.(*pb.SandboxCreateV2Response).SetSandboxId("../../x") }

// A name that leads to somebody else's sandbox is not followed to its end.
func TestAForeignNameIsRefused(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	made := func() (extensions.Spec, extensions.Handle) {
		spec := exttest.Spec(t, cfg)
		h, _, err := b.Provision(t.Context(), spec)
		must(t, err)
		return spec, h
	}
	spec, _ := made()
	_, other := made()
	v.Inject(grpctest.Fault{On: "SandboxGetFromNameV2", When: grpctest.Never, Times: -1, Change: func(answer proto.Message) {
		answer.(*pb.SandboxGetFromNameResponse).SetSandboxId(other.Ref)
	}})
	if _, err := b.Find(t.Context(), spec.ID); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("find: %v", err)
	}
	nameless := extensions.Handle{Extension: other.Extension, Version: other.Version, ID: spec.ID}
	if _, err := b.Teardown(t.Context(), nameless); !extensions.IsKind(err, extensions.KindConflict) || len(v.Sandboxes()) != 2 {
		t.Errorf("teardown: %v, %d sandboxes", err, len(v.Sandboxes()))
	}
}

// A list that lags proves nothing, and the name is found at once.
func TestALateListHidesNothing(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	v.SetListDelay(20 * time.Second)
	spec := exttest.Spec(t, cfg)
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	all, err := b.Status(t.Context(), nil)
	if err != nil || len(all) != 0 {
		t.Fatalf("it is listed already: %+v, %v", all, err)
	}
	if found, err := b.Find(t.Context(), spec.ID); err != nil || found.Encode() != h.Encode() {
		t.Errorf("found %s, %v", found.Encode(), err)
	}
	v.Clock().Advance(21 * time.Second)
	if all, err := b.Status(t.Context(), nil); err != nil || len(all) != 1 {
		t.Errorf("after the lag: %+v, %v", all, err)
	}
}

// Ten creates at once at a vendor that takes two a second: each is made by coming again when the vendor says.
func TestTenCreatesAtOnceKeepTheVendorsLimit(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	v.SetPlan(modaltest.Plan{CreatesPerSecond: 5})
	type result struct {
		err error
	}
	results := make(chan result)
	for range 10 {
		spec := exttest.Spec(t, cfg)
		go func() {
			for {
				_, _, err := b.Provision(t.Context(), spec)
				var said *extensions.Error
				if e, ok := err.(*extensions.Error); ok && e.Kind == extensions.KindUnavailable { //nolint:errorlint // the contract's own type
					said = e
				}
				if said == nil {
					results <- result{err: err}
					return
				}
				if said.RetryAfter <= 0 {
					results <- result{err: err}
					return
				}
				v.Clock().Advance(said.RetryAfter) // the vendor's time, not ours
			}
		}()
	}
	for range 10 {
		if r := <-results; r.err != nil {
			t.Error(r.err)
		}
	}
	if n := len(v.Sandboxes()); n != 10 {
		t.Errorf("%d sandboxes", n)
	}
}

// What the user's machine says to the vendor's other programs does not reach the adapter.
func TestNothingOfTheUsersReachesTheVendor(t *testing.T) {
	cfg := at(t)
	v := vendorOf(cfg)
	home := t.TempDir()
	t.Setenv("HOME", home)
	for name, value := range map[string]string{"MODAL_SERVER_URL": "nonsense", "MODAL_TOKEN_ID": "ak-other", "MODAL_TOKEN_SECRET": "as-other",
		"MODAL_ENVIRONMENT": "theirs", "MODAL_PROFILE": "theirs", "MODAL_SANDBOX_V2": "0", "MODAL_IMAGE_BUILDER_VERSION": "theirs",
		"MODAL_OAUTH_REFRESH_TOKEN": "theirs", "MODAL_LOGLEVEL": "nonsense", "MODAL_CONFIG_PATH": home} { // a folder cannot be read as a file
		t.Setenv(name, value)
	}
	b := open(t, cfg)
	for _, change := range []func(*extensions.Spec){func(*extensions.Spec) {}, withGPU} {
		spec := exttest.Spec(t, cfg, exttest.With(change))
		h, _, err := b.Provision(t.Context(), spec)
		must(t, err)
		found, err := b.Find(t.Context(), spec.ID)
		if err != nil || found.Encode() != h.Encode() {
			t.Errorf("found %s, %v", found.Encode(), err)
		}
	}
	for _, text := range outside(t, cfg) {
		if strings.Contains(text, "theirs") || strings.Contains(text, "-other") {
			t.Errorf("the vendor got %s", text)
		}
	}
	if n := len(v.Sandboxes()); n != 2 {
		t.Errorf("%d sandboxes", n)
	}
}

// The vendor says that a sandbox's time was up, and its tags say when that was.
func TestOneWhoseTimeWasUpIsToldWithItsEnd(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]exttest.Option{"V2": exttest.With(func(*extensions.Spec) {}), "V1": exttest.With(withGPU)} {
		cfg := at(t)
		v, b := vendorOf(cfg), open(t, cfg)
		spec := exttest.Spec(t, cfg, with)
		h, _, err := b.Provision(t.Context(), spec)
		must(t, err)
		v.Clock().Advance(time.Until(spec.Deadline) + time.Minute)
		all, err := b.Status(t.Context(), []extensions.Handle{h})
		must(t, err)
		late := all[0].EndedAt.Sub(spec.Deadline)
		if all[0].Phase != extensions.PhaseAbsent || all[0].Reason != "its time was up" || late < 0 || late > 5*time.Second {
			t.Errorf("%s: %+v, with a deadline at %s", name, all[0], spec.Deadline)
		}
		r, err := b.Teardown(t.Context(), h)
		if err != nil || !r.AlreadyGone || !r.EndedAt.Equal(all[0].EndedAt) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
