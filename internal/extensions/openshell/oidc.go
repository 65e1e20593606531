package openshell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

const (
	early      = 30 * time.Second // how long before its end a token is no longer used
	maxIssuers = 1 << 20          // bytes of an issuer's description of itself
)

// oidc gets tokens from an issuer, by the client's own credentials.
type oidc struct {
	issuer string
	grant  clientcredentials.Config
	client *http.Client
	held   chan *oauth2.Token // the last one, which one call at a time renews
}

func newOIDC(s settings, secret extensions.Secret) (*oidc, error) {
	if secret.IsZero() {
		return nil, extensions.Errorf(extensions.KindUnauthorized, "there is no credential for the OIDC client %s", s.client).
			WithRemedy("set the credential %s of this extension, or OPENSHELL_OIDC_CLIENT_SECRET", credentialSecret)
	}
	if _, err := webcall.Address(s.issuer); err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "config.%s: the address %w", fieldIssuer, err)
	}
	client, err := webcall.Client(nil)
	if err != nil {
		return nil, err
	}
	client.Timeout = grpcline.CallTime
	o := &oidc{issuer: strings.TrimSuffix(s.issuer, "/"), client: client, held: make(chan *oauth2.Token, 1),
		grant: clientcredentials.Config{ClientID: s.client, ClientSecret: secret.Reveal(), Scopes: s.scopes}}
	if s.audience != "" {
		o.grant.EndpointParams = url.Values{"audience": {s.audience}}
	}
	o.held <- nil
	return o, nil
}

// token returns one that is good for a while.
func (o *oidc) token(ctx context.Context) (string, error) {
	var t *oauth2.Token
	select {
	case t = <-o.held:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { o.held <- t }()
	if t != nil && (t.Expiry.IsZero() || time.Until(t.Expiry) > early) {
		return t.AccessToken, nil
	}
	if o.grant.TokenURL == "" {
		at, err := o.endpoint(ctx)
		if err != nil {
			return "", err
		}
		o.grant.TokenURL = at
	}
	fresh, err := o.grant.Token(context.WithValue(ctx, oauth2.HTTPClient, o.client))
	if err != nil {
		return "", err
	}
	t = fresh
	return t.AccessToken, nil
}

// endpoint asks the issuer where its tokens are.
func (o *oidc) endpoint(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.issuer+"/.well-known/openid-configuration", nil)
	if err != nil {
		return "", err
	}
	resp, err := o.client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var says struct {
		Issuer string `json:"issuer"`
		Tokens string `json:"token_endpoint"`
	}
	if resp.StatusCode != http.StatusOK {
		return "", &oauth2.RetrieveError{Response: resp}
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxIssuers)).Decode(&says); err != nil {
		return "", fmt.Errorf("what the issuer says of itself cannot be read: %w", err)
	}
	u, err := webcall.Address(says.Tokens)
	if err != nil || strings.TrimSuffix(says.Issuer, "/") != o.issuer || u.Scheme == "http" && !strings.HasPrefix(o.issuer, "http:") {
		return "", extensions.Errorf(extensions.KindInvalid, "the issuer %s names no safe address for tokens, or calls itself otherwise", o.issuer).
			WithRemedy("check %s in the binding's config", fieldIssuer)
	}
	return u.String(), nil
}

// refusal is the error of a call for which there is no token.
func (l *line) refusal(ctx context.Context, err error) error {
	var known *extensions.Error
	var told *oauth2.RetrieveError
	switch {
	case ctx.Err() != nil:
		return l.Unsent(ctx.Err())
	case errors.As(err, &known):
		return err
	case errors.As(err, &told) && told.Response != nil && told.Response.StatusCode >= 500:
		return extensions.Errorf(extensions.KindUnavailable, "the OIDC issuer gives no token now: %s", l.Words(told.Response.Status)).
			WithRemedy("try again later")
	case errors.As(err, &told) && told.Response != nil:
		return extensions.Errorf(extensions.KindUnauthorized, "the OIDC issuer gives no token: %s %s", l.Words(told.Response.Status),
			l.Words(told.ErrorCode)).WithRemedy("check %s, %s and the credential %s", fieldIssuer, fieldClient, credentialSecret)
	}
	return extensions.Errorf(extensions.KindUnreachable, "the OIDC issuer does not answer: %s", l.Words(err.Error())).
		WithRemedy("check the network, and %s", fieldIssuer)
}
