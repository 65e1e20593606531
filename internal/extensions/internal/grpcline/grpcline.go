// Package grpcline speaks gRPC to places: it connects when it is first needed, repeats nothing, bounds every call, and
// classifies each failure once, by the code of the answer and by whether the request left.
package grpcline

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

const (
	// CallTime bounds one call with its answer.
	CallTime   = time.Minute
	maxMessage = 16 << 20    // bytes
	quiet      = time.Minute // after which a connection without calls is closed
)

// Line is how one place is spoken to. Its fields do not change once it is used.
type Line struct {
	// Vendor is the place's name in messages.
	Vendor string
	// Secrets are what no message may contain.
	Secrets []string
	// Effect reports the calls, by their full names, whose lost answer leaves open whether something was done.
	Effect func(method string) bool
	// Soon reports an answer to a method by which the place limits calls, and when it wants to be asked again (0 = it does not
	// say); nil = it never does.
	Soon func(method string, answer *status.Status) (time.Duration, bool)
	// Refused and Full say what to do about a refused credential, and about a quota that is used up.
	Refused, Full string

	conns sync.Map // address -> *grpc.ClientConn
}

// Dial returns a connection to an https address, or without encryption to an http one. It contacts nobody yet. A nil
// secure stands for the system's authorities.
func Dial(u *url.URL, secure *tls.Config, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	transport, port := insecure.NewCredentials(), u.Port()
	if u.Scheme == "https" {
		transport = credentials.NewTLS(secure)
		if port == "" {
			port = "443"
		}
	}
	return grpc.NewClient("passthrough:///"+net.JoinHostPort(u.Hostname(), port), append(more, grpc.WithTransportCredentials(transport),
		grpc.WithDisableRetry(), grpc.WithStatsHandler(watch{}), grpc.WithIdleTimeout(quiet),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}))...)
}

// Open returns a connection to the address that a binding's config names in field; see To.
func (l *Line) Open(field, address string, secure *tls.Config, before Before) (*grpc.ClientConn, error) {
	c, err := l.To(address, secure, before)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "config.%s: the address %w", field, err).
			WithRemedy("write it as https://host:port; plain http is for this machine only")
	}
	return c, nil
}

// To returns the one connection of this line to an address, prepared as when it was asked for first; see Dial and Through. An
// address that no secret may be sent to is refused.
func (l *Line) To(address string, secure *tls.Config, before Before) (*grpc.ClientConn, error) {
	if c, ok := l.conns.Load(address); ok {
		return c.(*grpc.ClientConn), nil
	}
	u, err := webcall.Address(address)
	if err != nil {
		return nil, err
	}
	c, err := Dial(u, secure, l.Through(before)...)
	if err != nil {
		return nil, err
	}
	kept, known := l.conns.LoadOrStore(address, c)
	if known {
		_ = c.Close() // nobody has used it
	}
	return kept.(*grpc.ClientConn), nil
}

// Close ends the line's connections.
func (l *Line) Close() {
	for _, c := range l.conns.Range {
		_ = c.(*grpc.ClientConn).Close() // it only fails where it is closed
	}
}

// sent follows one call.
type sent struct{ left, answered atomic.Bool }

type sentKey struct{}

// watch notes what leaves and what comes back.
type watch struct{}

func (watch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (watch) HandleRPC(ctx context.Context, s stats.RPCStats) {
	of, ok := ctx.Value(sentKey{}).(*sent)
	if !ok {
		return
	}
	switch s.(type) {
	case *stats.OutHeader:
		of.left.Store(true)
	case *stats.InTrailer:
		of.answered.Store(true)
	}
}

func (watch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (watch) HandleConn(context.Context, stats.ConnStats) {}

// Ask makes one call, bounded by limit, and classifies its end.
func (l *Line) Ask(ctx context.Context, limit time.Duration, method string, do func(context.Context) error) error {
	var of sent
	limited, cancel := context.WithTimeout(context.WithValue(ctx, sentKey{}, &of), limit)
	defer cancel()
	err := do(limited)
	if err != nil {
		err = l.classified(ctx, method, &of, err)
	}
	if note, ok := ctx.Value(overheardKey{}).(*error); ok {
		*note = err
	}
	return err
}

type overheardKey struct{}

// Overhear is for an SDK that makes errors of its own of what it hears: heard returns, for the SDK's error of what it did with
// this context, that of its last call. What the SDK finds wrong by itself stays as it is. One goroutine uses both.
func Overhear(ctx context.Context) (overheard context.Context, heard func(error) error) {
	var last error
	return context.WithValue(ctx, overheardKey{}, &last), func(err error) error {
		if err != nil && last != nil {
			return last
		}
		return err
	}
}

// Stream begins a call of many messages, which its context bounds, and classifies its end.
func (l *Line) Stream(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, do grpc.Streamer,
	opts ...grpc.CallOption) (grpc.ClientStream, error) {
	var of sent
	s, err := do(context.WithValue(ctx, sentKey{}, &of), d, c, method, opts...)
	if err != nil {
		return nil, l.classified(ctx, method, &of, err)
	}
	return &heard{s, func(err error) error { return l.classified(ctx, method, &of, err) }}, nil
}

// heard is a stream whose end is classified.
type heard struct {
	grpc.ClientStream
	judge func(error) error
}

// RecvMsg implements grpc.ClientStream.
func (s *heard) RecvMsg(m any) error { return s.judge(s.ClientStream.RecvMsg(m)) }
