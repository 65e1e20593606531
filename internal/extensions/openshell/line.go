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

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// line is the connection to the gateway, with the caller's identity on it.
type line struct {
	grpcline.Line
	conn *grpc.ClientConn
	oidc *oidc // nil = the certificate says who calls
}

func newLine(s settings, secret extensions.Secret) (*line, error) {
	u, err := webcall.Address(s.address)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "config.%s: the address %w", fieldAddress, err).
			WithRemedy("write it as https://host:port; plain http is for this machine only")
	}
	l := &line{Line: grpcline.Line{Vendor: vendor, Effect: effect,
		Refused: "check the client certificate or the OIDC client, its scopes, and its role in the workspace",
		Full:    "end a sandbox of this workspace, or give the gateway's machines more room"}}
	var secure *tls.Config
	if s.tls != "" {
		if secure, err = certificates(s.tls, s.issuer == ""); err != nil {
			return nil, err
		}
	}
	if s.issuer != "" {
		if l.oidc, err = newOIDC(s, secret); err != nil {
			return nil, err
		}
		l.Secrets = []string{secret.Reveal()}
	}
	l.conn, err = grpcline.Dial(u, secure, grpc.WithChainUnaryInterceptor(l.call), grpc.WithChainStreamInterceptor(l.stream))
	return l, err
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
		return extensions.Errorf(extensions.KindUnauthorized, format, args...).WithRemedy("set %s in the binding's config to the folder with the "+
			"gateway's ca.crt and the client's tls.crt and tls.key, or set %s", fieldTLS, fieldIssuer)
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

func (l *line) close() {
	_ = l.conn.Close() // it only fails where it is closed
	if l.oidc != nil {
		l.oidc.client.CloseIdleConnections()
	}
}

// as is a context whose calls say who calls.
func (l *line) as(ctx context.Context) (context.Context, error) {
	if err := ctx.Err(); err != nil {
		return nil, l.Unsent(err)
	}
	if l.oidc == nil {
		return ctx, nil
	}
	token, err := l.oidc.token(ctx)
	if err != nil {
		return nil, l.refusal(ctx, err)
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), nil
}

// call is the way of every unary call.
func (l *line) call(
	ctx context.Context, method string, in, out any, c *grpc.ClientConn, do grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	ctx, err := l.as(ctx)
	if err != nil {
		return err
	}
	return l.Ask(ctx, grpcline.CallTime, method, func(ctx context.Context) error { return do(ctx, method, in, out, c, opts...) })
}

func (l *line) stream(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, do grpc.Streamer,
	opts ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, err := l.as(ctx)
	if err != nil {
		return nil, err
	}
	return l.Stream(ctx, d, c, method, do, opts...)
}
