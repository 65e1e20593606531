package modal

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

const (
	// sdkVersion is the SDK's, as go.mod has it; a test compares them.
	sdkVersion = "0.11.1"
	// pythonClient is the vendor's Python SDK whose behavior the vendor's Go SDK announces: its client.go.
	pythonClient = "1.0.0"
)

// line is the connection to the control plane: the account's keys on each call, and each failure classified once.
type line struct {
	grpcline.Line
	conn  *grpc.ClientConn
	keys  []string // header names and values
	token chan token
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
	l := &line{token: make(chan token, 1), environment: s.environment, Line: grpcline.Line{Vendor: vendor, Secrets: []string{secret, id},
		Effect: effect, Soon: throttled, Refused: "check the token: it is wrong, was revoked, or is not allowed to do this",
		Full: "end a sandbox of this workspace, or raise its plan's limit"}}
	l.keys = []string{"x-modal-client-type", strconv.Itoa(int(pb.ClientType_CLIENT_TYPE_LIBMODAL_GO)),
		"x-modal-client-version", pythonClient, "x-modal-libmodal-version", "modal-go/" + sdkVersion, "x-modal-host", u.Hostname(),
		"x-modal-token-id", id, "x-modal-token-secret", secret}
	l.token <- token{}
	l.conn, err = grpcline.Dial(u, nil, grpc.WithChainUnaryInterceptor(l.call), grpc.WithChainStreamInterceptor(l.stream))
	return l, err
}

// call is the way of every unary call.
func (l *line) call(
	ctx context.Context, method string, in, out any, c *grpc.ClientConn, do grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if err := ctx.Err(); err != nil {
		return l.Unsent(err)
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
	return l.Ask(ctx, grpcline.CallTime, method, func(ctx context.Context) error {
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

func (l *line) stream(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, do grpc.Streamer,
	opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return l.Stream(metadata.AppendToOutgoingContext(ctx, l.keys...), d, c, method, do, opts...)
}

// session returns the session's token, asked for by one call at a time.
func (l *line) session(ctx context.Context) (string, error) {
	var t token
	select {
	case t = <-l.token:
	case <-ctx.Done():
		return "", l.Unsent(ctx.Err())
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
