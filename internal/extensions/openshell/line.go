package openshell

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/oidc"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// dial makes the connection to the gateway, with the caller's identity on it.
func (b *backend) dial(secret extensions.Secret) error {
	b.line = grpcline.Line{Vendor: vendor, Effect: effect, Soon: throttled,
		Refused: "check the client certificate or the OIDC client, its scopes, and its role in the workspace",
		Full:    "destroy a sandbox of this workspace, or give the gateway's machines more room"}
	var secure *tls.Config
	var err error
	if b.tls != "" {
		if secure, err = certificates(b.tls, b.issuer == ""); err != nil {
			return err
		}
	}
	if b.issuer != "" {
		if secret.IsZero() {
			return extensions.Errorf(extensions.KindUnauthorized, "there is no credential for the OIDC client %s", b.client).
				WithRemedy("set the credential %s of this extension, or OPENSHELL_OIDC_CLIENT_SECRET", credentialSecret)
		}
		o := oidc.Options{Issuer: b.issuer, ID: b.client, Secret: secret, Audience: b.audience, Scopes: b.scopes}
		if b.oidc, err = oidc.New(o); err != nil {
			return extensions.AtField("config."+fieldIssuer, err)
		}
		b.line.Secrets = []string{secret.Reveal()}
	}
	conn, err := b.line.Open(fieldAddress, b.address, secure,
		func(ctx context.Context, method string, _ any) (context.Context, string, error) {
			ctx, err := b.caller(ctx)
			return ctx, method, err
		})
	b.gateway = gateway.NewOpenShellClient(conn)
	return err
}

// caller is a context whose calls say who calls, where a certificate does not.
func (b *backend) caller(ctx context.Context) (context.Context, error) {
	if b.oidc == nil {
		return ctx, ctx.Err()
	}
	token, err := b.oidc.Token(ctx)
	if err != nil && ctx.Err() != nil {
		err = b.line.Unsent(err)
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), err
}

// certificates reads the vendor's folder of them: whom to trust, and who calls.
func certificates(folder string, own bool) (*tls.Config, error) {
	if below, ok := strings.CutPrefix(folder, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		folder = filepath.Join(home, below)
	}
	bad := func(format string, args ...any) error {
		return extensions.Errorf(extensions.KindUnauthorized, format, args...).WithRemedy("set %s in the binding's config to the folder with "+
			"the gateway's ca.crt and the client's tls.crt and tls.key, or set %s", fieldTLS, fieldIssuer)
	}
	pem, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, bad("the gateway's certificate authority cannot be read: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, bad("%s has no certificate", filepath.Join(folder, "ca.crt"))
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	switch {
	case err == nil:
		c.Certificates = []tls.Certificate{pair}
	case own || !errors.Is(err, fs.ErrNotExist):
		return nil, bad("the client's certificate cannot be read: %w", err)
	}
	return c, nil
}
