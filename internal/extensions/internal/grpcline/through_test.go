package grpcline_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
)

// vendor answers every call by what a test says.
type vendor struct {
	grpc_health_v1.UnimplementedHealthServer
	answer func(ctx context.Context, service string) error
}

func (v vendor) Check(ctx context.Context, in *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{}, v.answer(ctx, in.GetService())
}

func (v vendor) Watch(in *grpc_health_v1.HealthCheckRequest, out grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	return v.answer(out.Context(), in.GetService())
}

func dial(t *testing.T, address string, before grpcline.Before, effect bool) grpc_health_v1.HealthClient {
	t.Helper()
	l := &grpcline.Line{Vendor: "Acme", Secrets: []string{"sesame"}, Effect: func(string) bool { return effect }, Refused: "check the key",
		Full: "end one"}
	c, err := grpcline.Dial(&url.URL{Scheme: "http", Host: address}, nil, l.Through(before)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return grpc_health_v1.NewHealthClient(c)
}

// serve returns the address of a vendor, and what breaks its connections.
func serve(t *testing.T, answer func(context.Context, string) error) (address string, sever func()) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(s, vendor{answer: answer})
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String(), s.Stop
}

func TestWhatIsHeardDecidesTheKind(t *testing.T) {
	t.Parallel()
	var code codes.Code
	address, _ := serve(t, func(context.Context, string) error { return status.Error(code, "said sesame") })
	looks, changes := dial(t, address, nil, false), dial(t, address, nil, true)
	for _, c := range []struct {
		code         codes.Code
		look, change extensions.Kind
	}{
		{codes.Unauthenticated, extensions.KindUnauthorized, extensions.KindUnauthorized},
		{codes.PermissionDenied, extensions.KindUnauthorized, extensions.KindUnauthorized},
		{codes.NotFound, extensions.KindNotFound, extensions.KindNotFound},
		{codes.AlreadyExists, extensions.KindConflict, extensions.KindConflict},
		{codes.InvalidArgument, extensions.KindInvalid, extensions.KindInvalid},
		{codes.ResourceExhausted, extensions.KindExhausted, extensions.KindExhausted},
		{codes.Unimplemented, extensions.KindUnsupported, extensions.KindUnsupported},
		{codes.Unavailable, extensions.KindUnavailable, extensions.KindIndeterminate},
		{codes.Internal, extensions.KindUnavailable, extensions.KindIndeterminate},
		{codes.Unknown, extensions.KindUnavailable, extensions.KindIndeterminate},
	} {
		code = c.code
		in := &grpc_health_v1.HealthCheckRequest{}
		_, look := looks.Check(t.Context(), in)
		_, change := changes.Check(t.Context(), in)
		stream, err := looks.Watch(t.Context(), in)
		if err == nil {
			_, err = stream.Recv()
		}
		for what, e := range map[string]struct {
			err  error
			want extensions.Kind
		}{"a look": {look, c.look}, "a change": {change, c.change}, "a stream": {err, c.look}} {
			if extensions.KindOf(e.err) != e.want || strings.Contains(e.err.Error(), "sesame") || status.Code(e.err) != c.code {
				t.Errorf("%s of %s is %s, want %s: %v", what, c.code, extensions.KindOf(e.err), e.want, e.err)
			}
		}
	}
}

// A call that left and was not answered may have had its effect; one that never left had none.
func TestWhetherItLeftDecides(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	address, sever := serve(t, func(ctx context.Context, _ string) error {
		close(heard)
		<-ctx.Done() // nobody hears the answer
		return ctx.Err()
	})
	go func() {
		<-heard
		sever()
	}()
	_, err := dial(t, address, nil, true).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if !extensions.IsKind(err, extensions.KindIndeterminate) {
		t.Errorf("a broken connection: %v", err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	_ = l.Close()
	_, err = dial(t, nobody, nil, true).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if !extensions.IsKind(err, extensions.KindUnreachable) || extensions.RemedyOf(err) == "" {
		t.Errorf("nobody there: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = dial(t, nobody, nil, true).Check(gone, &grpc_health_v1.HealthCheckRequest{})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing was sent") {
		t.Errorf("a canceled caller: %v", err)
	}
}

// What a call is prepared with reaches the vendor, and a call may have a limit of its own.
func TestACallIsPreparedAndBounded(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, func(ctx context.Context, service string) error {
		header, _ := metadata.FromIncomingContext(ctx)
		if got := header.Get("x-key"); len(got) != 1 || got[0] != "of "+service {
			return status.Errorf(codes.InvalidArgument, "key %q", got)
		}
		if service == "slow" {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	before := func(ctx context.Context, method string, in any) (context.Context, string, error) {
		of := in.(*grpc_health_v1.HealthCheckRequest).GetService()
		if of == "refused" {
			return nil, "", errors.New("not prepared")
		}
		return metadata.AppendToOutgoingContext(ctx, "x-key", "of "+of), strings.TrimSuffix(method, "V2"), nil
	}
	c := dial(t, address, before, true)
	if _, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "quick"}); err != nil {
		t.Error(err)
	}
	if _, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "refused"}); err == nil || err.Error() != "not prepared" {
		t.Error(err)
	}
	_, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "slow"}, grpcline.Within(time.Millisecond))
	if kind := extensions.KindOf(err); kind != extensions.KindIndeterminate && kind != extensions.KindUnreachable { // it left, or had no time to
		t.Errorf("a slow call: %v", err)
	}
}

// An SDK's own error gives way to that of the last call under its context, if that failed.
func TestWhatAnSDKHeardIsOverheard(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, func(_ context.Context, service string) error {
		if service == "good" {
			return nil
		}
		return status.Error(codes.AlreadyExists, "the name is taken")
	})
	c := dial(t, address, nil, true)
	own := errors.New("the SDK's own")
	for _, x := range []struct {
		calls []string
		err   error
		kind  extensions.Kind
	}{
		{[]string{"bad"}, own, extensions.KindConflict}, {[]string{"good", "bad"}, own, extensions.KindConflict},
		{[]string{"bad", "good"}, own, extensions.KindInternal}, {nil, own, extensions.KindInternal}, {[]string{"bad"}, nil, ""},
	} {
		ctx, heard := grpcline.Overhear(t.Context())
		for _, service := range x.calls {
			_, _ = c.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
		}
		if err := heard(x.err); extensions.KindOf(err) != x.kind {
			t.Errorf("%v: %v", x.calls, err)
		}
	}
}

// An address has one connection of a line; one that no secret may be sent to has none, and the field is named that gave it.
func TestALineHasOneConnectionForAnAddress(t *testing.T) {
	t.Parallel()
	l := &grpcline.Line{Vendor: "Acme", Effect: func(string) bool { return false }}
	defer l.Close()
	a, err := l.Open("address", "http://127.0.0.1:9", nil, nil)
	b, again := l.To("http://127.0.0.1:9", nil, nil)
	c, other := l.To("http://127.0.0.1:10", nil, nil)
	if err != nil || again != nil || other != nil || a != b || a == c {
		t.Errorf("%p %p %p, %v, %v, %v", a, b, c, err, again, other)
	}
	if _, err := l.Open("address", "http://example.org", nil, nil); !extensions.IsKind(err, extensions.KindInvalid) ||
		!strings.Contains(err.Error(), "config.address") {
		t.Errorf("%v", err)
	}
}
