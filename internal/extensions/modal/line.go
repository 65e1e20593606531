package modal

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

const (
	callTime   = time.Minute // of one call with its answer
	maxMessage = 16 << 20    // bytes
	quiet      = time.Minute // after which a connection without calls is closed
	// sdkVersion is the SDK's, as go.mod has it; a test compares them.
	sdkVersion = "0.11.1"
	// pythonClient is the vendor's Python SDK whose behavior the vendor's Go SDK announces: its client.go.
	pythonClient = "1.0.0"
)

// line is the connection to the control plane: the account's keys on each call, and each failure classified once.
type line struct {
	conn   *grpc.ClientConn
	keys   []string // header names and values
	secret []string // what no message may contain
	token  chan token
	// environment is the workspace's.
	environment string
}

// token is the session's; it is fetched again at half of its life.
type token struct {
	text  string
	until time.Time
}

func newLine(s settings, given map[string]extensions.Secret) (*line, error) {
	id, secret := given[credentialID].Reveal(), given[credentialSecret].Reveal()
	for name, v := range map[string]string{credentialID: id, credentialSecret: secret} {
		if v == "" || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, extensions.Errorf(extensions.KindUnauthorized, "the credential %s of %s is empty or has characters that no token has",
				name, vendor).WithRemedy("set token_id and token_secret of this extension, or MODAL_TOKEN_ID and MODAL_TOKEN_SECRET")
		}
	}
	u, err := webcall.Address(s.serverURL)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "config.server_url: the address %w", err).
			WithRemedy("write it as https://host; plain http is for this machine only")
	}
	l := &line{secret: []string{secret, id}, token: make(chan token, 1), environment: s.environment}
	l.keys = []string{"x-modal-client-type", strconv.Itoa(int(pb.ClientType_CLIENT_TYPE_LIBMODAL_GO)),
		"x-modal-client-version", pythonClient, "x-modal-libmodal-version", "modal-go/" + sdkVersion, "x-modal-host", u.Hostname(),
		"x-modal-token-id", id, "x-modal-token-secret", secret}
	l.token <- token{}
	l.conn, err = dial(u, grpc.WithChainUnaryInterceptor(l.call), grpc.WithChainStreamInterceptor(l.stream))
	return l, err
}

// dial connects lazily.
func dial(u *url.URL, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	port := u.Port()
	if u.Scheme == "https" {
		secure = credentials.NewTLS(nil)
		if port == "" {
			port = "443"
		}
	}
	return grpc.NewClient("passthrough:///"+net.JoinHostPort(u.Hostname(), port), append(more, grpc.WithTransportCredentials(secure),
		grpc.WithDisableRetry(), grpc.WithStatsHandler(watch{}), grpc.WithIdleTimeout(quiet),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}))...)
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

// call is the way of every unary call.
func (l *line) call(
	ctx context.Context, method string, in, out any, c *grpc.ClientConn, do grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if err := ctx.Err(); err != nil {
		return unsent(err)
	}
	if image, ok := in.(*pb.ImageGetOrCreateRequest); ok && os.Getenv("MODAL_IMAGE_BUILDER_VERSION") != "" {
		if err := l.ownBuilder(ctx, image); err != nil {
			return err
		}
	}
	headers := slices.Clone(l.keys)
	if method != pb.ModalClient_AuthTokenGet_FullMethodName {
		t, err := l.session(ctx)
		if err != nil {
			return err
		}
		headers = append(headers, "x-modal-auth-token", t)
	}
	return l.ask(ctx, callTime, method, func(ctx context.Context) error {
		return do(metadata.AppendToOutgoingContext(ctx, headers...), method, in, out, c, opts...)
	})
}

// ownBuilder replaces the builder's version, which the SDK takes from the user's variable, by the environment's.
func (l *line) ownBuilder(ctx context.Context, in *pb.ImageGetOrCreateRequest) error {
	out, err := pb.NewModalClientClient(l.conn).EnvironmentGetOrCreate(ctx,
		pb.EnvironmentGetOrCreateRequest_builder{DeploymentName: l.environment}.Build())
	if err == nil {
		in.SetBuilderVersion(out.GetMetadata().GetSettings().GetImageBuilderVersion())
	}
	return err
}

// ask makes one call, bounded by limit, and classifies its end.
func (l *line) ask(ctx context.Context, limit time.Duration, method string, do func(context.Context) error) error {
	var of sent
	limited, cancel := context.WithTimeout(context.WithValue(ctx, sentKey{}, &of), limit)
	defer cancel()
	if err := do(limited); err != nil {
		return l.classified(ctx, method, &of, err)
	}
	return nil
}

func (l *line) stream(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, do grpc.Streamer,
	opts ...grpc.CallOption) (grpc.ClientStream, error) {
	var of sent
	ctx = metadata.AppendToOutgoingContext(context.WithValue(ctx, sentKey{}, &of), l.keys...)
	s, err := do(ctx, d, c, method, opts...)
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

// session returns the session's token, asked for by one call at a time.
func (l *line) session(ctx context.Context) (string, error) {
	var t token
	select {
	case t = <-l.token:
	case <-ctx.Done():
		return "", unsent(ctx.Err())
	}
	defer func() { l.token <- t }()
	if time.Now().Before(t.until) {
		return t.text, nil
	}
	answer, err := pb.NewModalClientClient(l.conn).AuthTokenGet(ctx, &pb.AuthTokenGetRequest{})
	if err != nil {
		return "", err
	}
	t = token{text: answer.GetToken(), until: time.Now().Add(untilOf(answer.GetToken()) / 2)}
	return t.text, nil
}

// expiry is when a JWT ends, if it says so.
func expiry(jwt string) (time.Time, bool) {
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if parts := strings.Split(jwt, "."); len(parts) == 3 {
		if b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "=")); err == nil {
			_ = json.Unmarshal(b, &claims) // one of another shape says nothing
		}
	}
	return time.Unix(claims.Exp, 0).UTC(), claims.Exp > 0
}

// untilOf is how long a JWT is good for; one that does not say is asked for again after 20 minutes, as the vendor's SDK
// takes it.
func untilOf(jwt string) time.Duration {
	at, ok := expiry(jwt)
	if !ok {
		return 20 * time.Minute
	}
	return time.Until(at)
}
