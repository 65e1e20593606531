package grpcline

import (
	"context"
	"time"

	"google.golang.org/grpc"
)

// Before prepares a call: it may change the request, which is nil for a stream, and says which method is called and under
// which context.
type Before func(ctx context.Context, method string, in any) (context.Context, string, error)

// Through are the options of a connection whose every call is prepared, nil = as it is, then bounded and classified.
func (l *Line) Through(before Before) []grpc.DialOption {
	prepared := func(ctx context.Context, method string, in any) (context.Context, string, error) {
		if err := ctx.Err(); err != nil {
			return ctx, method, l.Unsent(err)
		}
		if before == nil {
			return ctx, method, nil
		}
		return before(ctx, method, in)
	}
	unary := func(
		ctx context.Context, method string, in, out any, c *grpc.ClientConn, do grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		ctx, method, err := prepared(ctx, method, in)
		if err != nil {
			return err
		}
		limit := CallTime
		for _, o := range opts {
			if w, ok := o.(within); ok {
				limit = w.limit
			}
		}
		return l.Ask(ctx, limit, method, func(ctx context.Context) error { return do(ctx, method, in, out, c, opts...) })
	}
	stream := func(
		ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, do grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		ctx, method, err := prepared(ctx, method, nil)
		if err != nil {
			return nil, err
		}
		return l.Stream(ctx, d, c, method, do, opts...)
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(unary), grpc.WithChainStreamInterceptor(stream)}
}

// Within bounds one unary call of such a connection, instead of CallTime.
func Within(limit time.Duration) grpc.CallOption { return within{limit: limit} }

type within struct {
	grpc.EmptyCallOption
	limit time.Duration
}
