// Package grpctest is what the fakes of places with an interface over gRPC have in common: a wire that records every message,
// lets in who may call, lets faults strike, and stands in for a process that was killed.
package grpctest

import (
	"context"
	"crypto/tls"
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

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// Wire is the way to one fake: what came over it, and what goes wrong on it. Its methods may be called at any time from any
// goroutine.
type Wire struct {
	t     testing.TB
	admit func(ctx context.Context, method string) error

	mu       sync.Mutex
	faults   []*Fault
	requests []Request
}

// NewWire returns one without faults. admit refuses who may not make a call, by the call's full name.
func NewWire(t testing.TB, admit func(ctx context.Context, method string) error) *Wire {
	return &Wire{t: t, admit: admit}
}

// Request is one message that the fake got.
type Request struct {
	Method  string // the call's short name, such as CreateSandbox
	Header  metadata.MD
	Message proto.Message
}

// Requests are all that the fake got so far, those that it refused, too.
func (w *Wire) Requests() []Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Request{}, w.requests...)
}

// note keeps a message and looks at what the stubs do not know.
func (w *Wire) note(ctx context.Context, method string, in any) {
	m, ok := in.(proto.Message)
	if !ok {
		return
	}
	if unknown := m.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		w.t.Errorf("%s has fields that the vendor's description does not know: %x", method, []byte(unknown))
	}
	header, _ := metadata.FromIncomingContext(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, Request{Method: method, Header: header, Message: proto.Clone(m)})
}

// Front is one way to the fake, of one or several servers.
type Front struct {
	w       *Wire
	killer  *vendortest.Killer // nil = it kills nobody
	servers []*grpc.Server
	lines   []*lines
	running sync.WaitGroup
}

// Front returns a way that leads nowhere yet; Stop ends it. k may be nil.
func (w *Wire) Front(k *vendortest.Killer) *Front { return &Front{w: w, killer: k} }

// Serve runs a server on loopback, with TLS unless secure is nil, and returns its address.
func (f *Front) Serve(secure *tls.Config, register func(*grpc.Server)) (url string) {
	f.w.t.Helper()
	l, err := new(net.ListenConfig).Listen(f.w.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		f.w.t.Fatal(err)
	}
	all := &lines{Listener: l, open: map[net.Conn]bool{}}
	url = "http://" + l.Addr().String()
	options := []grpc.ServerOption{grpc.UnaryInterceptor(f.unary), grpc.StreamInterceptor(f.stream), grpc.MaxRecvMsgSize(16 << 20)}
	if secure != nil {
		url = "https://" + l.Addr().String()
		options = append(options, grpc.Creds(credentials.NewTLS(secure)))
	}
	s := grpc.NewServer(options...)
	register(s)
	f.servers, f.lines = append(f.servers, s), append(f.lines, all)
	f.running.Go(func() { _ = s.Serve(all) })
	return url
}

// Stop ends all servers.
func (f *Front) Stop() {
	for _, s := range f.servers {
		s.Stop()
	}
	f.running.Wait()
}

// Shut refuses every connection from now on.
func (f *Front) Shut() {
	for _, l := range f.lines {
		_ = l.Close()
	}
	f.sever()
}

// sever breaks all connections.
func (f *Front) sever() {
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

var errBroken = errors.New("the connection was broken")

func short(method string) string { return method[strings.LastIndexByte(method, '/')+1:] }

func (f *Front) unary(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := short(info.FullMethod)
	f.w.note(ctx, method, in)
	before, after := f.killer.Strikes()
	if before {
		f.killer.Kill()
		return nil, errBroken
	}
	if err := f.w.admit(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	fault := f.w.fault(method)
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

func (f *Front) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	before, after := f.killer.Strikes()
	if before || after {
		f.killer.Kill()
		return errBroken
	}
	if err := f.w.admit(s.Context(), info.FullMethod); err != nil {
		return err
	}
	if fault := f.w.fault(short(info.FullMethod)); fault != nil {
		return fault.strike(f)
	}
	return handle(srv, &noting{s, f.w, short(info.FullMethod)})
}

// noting keeps what a stream's caller sent.
type noting struct {
	grpc.ServerStream
	w      *Wire
	method string
}

// RecvMsg implements grpc.ServerStream.
func (n *noting) RecvMsg(m any) error {
	err := n.ServerStream.RecvMsg(m)
	if err == nil {
		n.w.note(n.Context(), n.method, m)
	}
	return err
}

// When says whether a call has had its effect.
type When int

// When a fault strikes.
const (
	Before When = iota // nothing has happened yet
	After              // it has all happened, and its answer is lost
	Never              // it happens, and its answer is another one: Change
)

// Fault is a failure of a call.
type Fault struct {
	On    string // the call's short name; "" = each one
	When  When
	Times int   // how often; 0 = once, below 0 = until the test ends
	Err   error // what is answered; nil breaks the connection
	// Change changes the answer; with Never only.
	Change func(answer proto.Message)
	// Skip lets so many calls through first.
	Skip int
}

// Inject lets a fault strike calls from now on.
func (w *Wire) Inject(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	w.faults = append(w.faults, &f)
}

func (w *Wire) fault(method string) *Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		if f.Times == 0 || f.On != "" && f.On != method {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		f.Times--
		return f
	}
	return nil
}

func (f *Fault) strike(of *Front) error {
	if f.Err != nil {
		return f.Err
	}
	of.sever()
	return status.Error(codes.Unavailable, "nobody hears this")
}
