package openshelltest

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// front is one way to the gateway.
type front struct {
	g       *Gateway
	killer  *Killer // nil = it kills nobody
	url     string
	server  *grpc.Server
	lines   *lines
	running sync.WaitGroup
}

func (g *Gateway) newFront(t testing.TB, k *Killer) *front {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{g: g, killer: k, url: "http://" + l.Addr().String(), lines: &lines{Listener: l, open: map[net.Conn]bool{}}}
	options := []grpc.ServerOption{grpc.UnaryInterceptor(f.unary), grpc.StreamInterceptor(f.stream), grpc.MaxRecvMsgSize(16 << 20)}
	if g.tls != nil {
		f.url = "https://" + l.Addr().String()
		options = append(options, grpc.Creds(credentials.NewTLS(g.tls)))
	}
	f.server = grpc.NewServer(options...)
	gateway.RegisterOpenShellServer(f.server, plane{g: g})
	f.running.Go(func() { _ = f.server.Serve(f.lines) })
	return f
}

func (f *front) stop() {
	f.server.Stop()
	f.running.Wait()
}

// shut refuses every connection from now on.
func (f *front) shut() {
	_ = f.lines.Close()
	f.sever()
}

// sever breaks all connections.
func (f *front) sever() { f.lines.sever() }

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

// Request is one that the gateway got.
type Request struct {
	Method  string // its short name, such as CreateSandbox
	Header  metadata.MD
	Message proto.Message
}

// Requests are all that the gateway got so far, those that it refused, too.
func (g *Gateway) Requests() []Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Request{}, g.requests...)
}

func short(method string) string { return method[strings.LastIndexByte(method, '/')+1:] }

// note keeps a request and looks at what the stubs do not know.
func (g *Gateway) note(ctx context.Context, method string, in any) {
	m, ok := in.(proto.Message)
	if !ok {
		return
	}
	if unknown := m.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		g.t.Errorf("%s has fields that the vendor's description does not know: %x", method, []byte(unknown))
	}
	header, _ := metadata.FromIncomingContext(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests = append(g.requests, Request{Method: method, Header: header, Message: proto.Clone(m)})
}

// admit lets in who has a token of the issuer, where there is one; TLS has asked for the certificate.
func (g *Gateway) admit(ctx context.Context) error {
	header, _ := metadata.FromIncomingContext(ctx)
	if got := header.Get("authorization"); g.issuer != nil && (len(got) != 1 || got[0] != "Bearer "+g.token) {
		return status.Error(codes.Unauthenticated, "missing or invalid bearer token")
	}
	return nil
}

var errBroken = errors.New("the connection was broken")

func (f *front) unary(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := short(info.FullMethod)
	f.g.note(ctx, method, in)
	before, after := f.killer.strikes()
	if before {
		f.killer.kill()
		return nil, errBroken
	}
	if err := f.g.admit(ctx); err != nil {
		return nil, err
	}
	fault := f.g.fault(method)
	if fault != nil && fault.When == Before {
		return nil, fault.strike(f)
	}
	out, err := handle(ctx, in)
	if after {
		f.killer.kill()
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
	before, after := f.killer.strikes()
	if before || after {
		f.killer.kill()
		return errBroken
	}
	if err := f.g.admit(s.Context()); err != nil {
		return err
	}
	if fault := f.g.fault(short(info.FullMethod)); fault != nil {
		return fault.strike(f)
	}
	return handle(srv, &noting{s, f.g, short(info.FullMethod)})
}

// noting keeps what a stream's caller sent.
type noting struct {
	grpc.ServerStream
	g      *Gateway
	method string
}

// RecvMsg implements grpc.ServerStream.
func (n *noting) RecvMsg(m any) error {
	err := n.ServerStream.RecvMsg(m)
	if err == nil {
		n.g.note(n.Context(), n.method, m)
	}
	return err
}
