package modaltest

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// front is one way to the vendor: both of its servers.
type front struct {
	v                   *Vendor
	killer              *vendortest.Killer // nil = it kills nobody
	planeURL, routerURL string
	servers             []*grpc.Server
	lines               []*lines
	running             sync.WaitGroup
}

func (v *Vendor) newFront(t testing.TB, k *vendortest.Killer) *front {
	t.Helper()
	f := &front{v: v, killer: k}
	serve := func(register func(*grpc.Server)) string {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		all := &lines{Listener: l, open: map[net.Conn]bool{}}
		s := grpc.NewServer(grpc.UnaryInterceptor(f.unary), grpc.StreamInterceptor(f.stream), grpc.MaxRecvMsgSize(16<<20))
		register(s)
		f.servers, f.lines = append(f.servers, s), append(f.lines, all)
		f.running.Go(func() { _ = s.Serve(all) })
		return "http://" + l.Addr().String()
	}
	f.planeURL = serve(func(s *grpc.Server) { pb.RegisterModalClientServer(s, plane{v: v, f: f}) })
	f.routerURL = serve(func(s *grpc.Server) { pb.RegisterTaskCommandRouterServer(s, router{v: v}) })
	return f
}

// router is how its routers are told of.
func (f *front) router() string {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	if f.v.secure {
		return strings.Replace(f.routerURL, "http://", "https://", 1)
	}
	return f.routerURL
}

func (f *front) stop() {
	for _, s := range f.servers {
		s.Stop()
	}
	f.running.Wait()
}

// shut refuses every connection from now on.
func (f *front) shut() {
	for _, l := range f.lines {
		_ = l.Close()
	}
	f.sever()
}

// sever breaks all connections.
func (f *front) sever() {
	for _, l := range f.lines {
		l.sever()
	}
}

// lines is a listener whose connections can be broken.
type lines struct {
	net.Listener
	mu   sync.Mutex
	open map[net.Conn]bool
}

// Accept implements net.Listener.
func (l *lines) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.open[c] = true
		l.mu.Unlock()
	}
	return c, err
}

func (l *lines) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Close()
		delete(l.open, c)
	}
}

// Request is one that the vendor got.
type Request struct {
	Method  string // its short name, such as SandboxCreateV2
	Header  metadata.MD
	Message proto.Message
}

// Requests are all that the vendor got so far, those that it refused, too.
func (v *Vendor) Requests() []Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]Request{}, v.requests...)
}

func short(method string) string { return method[strings.LastIndexByte(method, '/')+1:] }

// note keeps a request and looks at what the stubs do not know.
func (v *Vendor) note(ctx context.Context, method string, in any) {
	m, ok := in.(proto.Message)
	if !ok {
		return
	}
	if unknown := m.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		v.t.Errorf("%s has fields that the vendor's description does not know: %x", method, []byte(unknown))
	}
	header, _ := metadata.FromIncomingContext(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests = append(v.requests, Request{Method: method, Header: header, Message: proto.Clone(m)})
}

// admit lets in who has the workspace's token, and for all but the session's token that one too.
func (v *Vendor) admit(ctx context.Context, full string) error {
	if !strings.HasPrefix(full, "/modal.client.") {
		return nil // routers have tokens of their own
	}
	header, _ := metadata.FromIncomingContext(ctx)
	// The vendor's own SDK sends its fields twice where it fetches a session on the way of another call.
	has := func(name, value string) bool {
		got := slices.Compact(slices.Clone(header.Get(name)))
		return len(got) == 1 && got[0] == value
	}
	for _, name := range []string{"x-modal-client-type", "x-modal-client-version", "x-modal-libmodal-version"} {
		if len(header.Get(name)) == 0 {
			return status.Errorf(codes.InvalidArgument, "no %s", name)
		}
	}
	if !has("x-modal-token-id", v.TokenID) || !has("x-modal-token-secret", v.TokenSecret) {
		return status.Error(codes.Unauthenticated, "Token ID or secret is invalid")
	}
	streams := strings.HasSuffix(full, "Streaming")
	if full != pb.ModalClient_AuthTokenGet_FullMethodName && !streams && !has("x-modal-auth-token", session(v)) {
		return status.Error(codes.Unauthenticated, "no valid auth token")
	}
	return nil
}

var errBroken = errors.New("the connection was broken")

func (f *front) unary(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := short(info.FullMethod)
	f.v.note(ctx, method, in)
	before, after := f.killer.Strikes()
	if before {
		f.killer.Kill()
		return nil, errBroken
	}
	if err := f.v.admit(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	fault := f.v.fault(method)
	if fault != nil && fault.When == Before {
		return nil, fault.strike(f)
	}
	out, err := handle(ctx, in)
	if after {
		f.killer.Kill()
		return nil, errBroken
	}
	if fault != nil && fault.When == After {
		return nil, fault.strike(f)
	}
	if fault != nil && fault.Change != nil && err == nil {
		fault.Change(out.(proto.Message))
	}
	return out, err
}

func (f *front) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	before, after := f.killer.Strikes()
	if before || after {
		f.killer.Kill()
		return errBroken
	}
	if err := f.v.admit(s.Context(), info.FullMethod); err != nil {
		return err
	}
	if fault := f.v.fault(short(info.FullMethod)); fault != nil {
		return fault.strike(f)
	}
	return handle(srv, &noting{s, f.v, short(info.FullMethod)})
}

// noting keeps what a stream's caller sent.
type noting struct {
	grpc.ServerStream
	v      *Vendor
	method string
}

// RecvMsg implements grpc.ServerStream.
func (n *noting) RecvMsg(m any) error {
	err := n.ServerStream.RecvMsg(m)
	if err == nil {
		n.v.note(n.Context(), n.method, m)
	}
	return err
}
