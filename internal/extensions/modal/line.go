package modal

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// pythonClient is the vendor's Python SDK whose behavior the vendor's Go SDK announces: its client.go.
const pythonClient = "1.0.0"

// token is the session's; it is fetched again at half of its life.
type token struct {
	text  string
	until time.Time
}

// dialPlane connects to the control plane, at the first call.
func (b *backend) dialPlane(id, secret string) (*grpc.ClientConn, error) {
	u, err := webcall.Address(b.serverURL)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "config.server_url: the address %w", err).
			WithRemedy("write it as https://host; plain http is for this machine only")
	}
	for _, v := range []string{id, secret} {
		if v == "" || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, extensions.Errorf(extensions.KindUnauthorized, "%s or %s of %s is empty or has characters that no token has",
				credentialID, credentialSecret, vendor).
				WithRemedy("set token_id and token_secret of this extension, or MODAL_TOKEN_ID and MODAL_TOKEN_SECRET")
		}
	}
	b.line = grpcline.Line{Vendor: vendor, Secrets: []string{secret, id}, Effect: effect, Soon: throttled,
		Refused: "check the token: it is wrong, was revoked, or is not allowed to do this",
		Full:    "end a sandbox of this workspace, or raise its plan's limit"}
	b.header = []string{"x-modal-client-type", strconv.Itoa(int(pb.ClientType_CLIENT_TYPE_LIBMODAL_GO)),
		"x-modal-client-version", pythonClient, "x-modal-host", u.Hostname(), "x-modal-token-id", id, "x-modal-token-secret", secret}
	b.token = make(chan token, 1)
	b.token <- token{}
	return grpcline.Dial(u, nil, b.line.Through(b.before)...)
}

// before prepares a call to the control plane.
func (b *backend) before(ctx context.Context, method string, in any) (context.Context, string, error) {
	// V1 has the calls of one sandbox under the same names without V2, with the same messages.
	if of, ok := in.(interface{ GetSandboxId() string }); ok && backendOf(of.GetSandboxId()) == 1 {
		method = strings.TrimSuffix(method, "V2")
	}
	header := b.header
	if in != nil && method != pb.ModalClient_AuthTokenGet_FullMethodName { // the SDK's streams have no session either
		t, err := b.session(ctx)
		if err != nil {
			return nil, "", err
		}
		header = append([]string{"x-modal-auth-token", t}, header...)
	}
	return metadata.AppendToOutgoingContext(ctx, header...), method, nil
}

// session returns the session's token, asked for by one call at a time.
func (b *backend) session(ctx context.Context) (string, error) {
	var t token
	select {
	case t = <-b.token:
	case <-ctx.Done():
		return "", b.line.Unsent(ctx.Err())
	}
	defer func() { b.token <- t }()
	if time.Now().Before(t.until) {
		return t.text, nil
	}
	answer, err := b.control.AuthTokenGet(ctx, &pb.AuthTokenGetRequest{})
	if err == nil {
		t = token{text: answer.GetToken(), until: time.Now().Add(untilOf(answer.GetToken()) / 2)}
	}
	return t.text, err
}

// expiry is when a JWT ends, if it says so.
func expiry(text string) (time.Time, bool) {
	var claims jwt.RegisteredClaims
	_, _, err := jwt.NewParser(jwt.WithPaddingAllowed()).ParseUnverified(text, &claims)
	if err != nil || claims.ExpiresAt == nil {
		return time.Time{}, false
	}
	return claims.ExpiresAt.UTC(), true
}

// untilOf is how long a JWT is good for; one that does not say is asked for again after 20 minutes, as the vendor's SDK
// takes it.
func untilOf(text string) time.Duration {
	at, ok := expiry(text)
	if !ok {
		return 20 * time.Minute
	}
	return time.Until(at)
}
