package modal

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/metadata"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/held"
)

// pythonClient is the vendor's Python SDK whose behavior the vendor's Go SDK announces: its client.go.
const pythonClient = "1.0.0"

const (
	unsaid = 20 * time.Minute // the life of a token that does not say it, as the vendor's SDK takes it
	early  = 30 * time.Second // how long before its end a token is no longer used
)

// dial makes the connection to the control plane, which contacts it at the first call.
func (b *backend) dial(id, secret extensions.Secret) error {
	if !id.FitsHeader() || !secret.FitsHeader() {
		return extensions.Errorf(extensions.KindUnauthorized, "%s or %s of %s is empty or has characters that no token has",
			credentialID, credentialSecret, vendor).
			WithRemedy("set token_id and token_secret of this extension, or MODAL_TOKEN_ID and MODAL_TOKEN_SECRET")
	}
	b.line = grpcline.Line{Vendor: vendor, Secrets: []string{secret.Reveal(), id.Reveal()}, Effect: effect, Soon: throttled,
		Refused: "check the token: it is wrong, was revoked, or is not allowed to do this",
		Full:    "destroy a sandbox of this workspace, or raise its plan's limit"}
	plane, err := b.line.Open(fieldServer, b.serverURL, nil, b.before)
	if err != nil {
		return err
	}
	u, _ := url.Parse(b.serverURL) // Open has read it
	b.header = []string{"x-modal-client-type", strconv.Itoa(int(pb.ClientType_CLIENT_TYPE_LIBMODAL_GO)), "x-modal-host", u.Hostname(),
		"x-modal-client-version", pythonClient, "x-modal-token-id", id.Reveal(), "x-modal-token-secret", secret.Reveal()}
	b.token, b.control = held.New[string](), pb.NewModalClientClient(plane)
	return nil
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

// session returns the session's token, which is fetched again at half of its life.
func (b *backend) session(ctx context.Context) (string, error) {
	return b.token.Get(ctx, func(ctx context.Context) (string, time.Time, error) {
		answer, err := b.control.AuthTokenGet(ctx, &pb.AuthTokenGetRequest{})
		return answer.GetToken(), time.Now().Add(held.Life(answer.GetToken(), unsaid) / 2), err
	})
}
