// Package oidc gets tokens from an OpenID Connect issuer by a client's own credentials, keeps them for their time, and says
// why there is none.
package oidc

import (
	"context"
	"encoding/base64"
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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/held"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

const (
	callTime = time.Minute      // of one call to the issuer
	early    = 30 * time.Second // how long before its end a token is no longer used
	unsaid   = 24 * time.Hour   // how long one is used whose issuer does not say
	maxSaid  = 1 << 20          // bytes of an issuer's description of itself
	maxWords = 300              // characters of its text in a message
)

// Options say who asks whom.
type Options struct {
	Issuer   string // its address
	ID       string // the client's
	Secret   extensions.Secret
	Audience string   // "" = the issuer's own choice
	Scopes   []string // none = the issuer's own choice
}

// Client gets tokens for one client. It is safe for concurrent use.
type Client struct {
	issuer string
	secret string
	grant  clientcredentials.Config
	http   *http.Client
	token  held.Value[string]
}

// New contacts nobody. An address that no secret may be sent to is KindInvalid.
func New(o Options) (*Client, error) {
	if _, err := webcall.Address(o.Issuer); err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the OIDC issuer's address %w", err)
	}
	client, err := webcall.Client(nil)
	if err != nil {
		return nil, err
	}
	client.Timeout = callTime
	c := &Client{issuer: strings.TrimSuffix(o.Issuer, "/"), secret: o.Secret.Reveal(), http: client, token: held.New[string](),
		grant: clientcredentials.Config{ClientID: o.ID, ClientSecret: o.Secret.Reveal(), Scopes: o.Scopes}}
	if o.Audience != "" {
		c.grant.EndpointParams = url.Values{"audience": {o.Audience}}
	}
	return c, nil
}

// Claims fills into with what a token says of itself, which nobody has proved. What is no token says nothing.
func Claims(token string, into any) {
	if parts := strings.Split(token, "."); len(parts) == 3 {
		body, _ := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
		_ = json.Unmarshal(body, into)
	}
}

// Close releases connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Token returns one that is good for a while. A refusal is KindUnauthorized.
func (c *Client) Token(ctx context.Context) (string, error) { return c.token.Get(ctx, c.fetch) }

func (c *Client) fetch(ctx context.Context) (token string, until time.Time, err error) {
	if c.grant.TokenURL == "" {
		at, err := c.endpoint(ctx)
		if err != nil {
			return "", until, c.refusal(ctx, err)
		}
		c.grant.TokenURL = at
	}
	t, err := c.grant.Token(context.WithValue(ctx, oauth2.HTTPClient, c.http))
	if err != nil {
		return "", until, c.refusal(ctx, err)
	}
	if t.Expiry.IsZero() {
		return t.AccessToken, time.Now().Add(unsaid), nil
	}
	return t.AccessToken, t.Expiry.Add(-early), nil
}

// endpoint asks the issuer where its tokens are.
func (c *Client) endpoint(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.issuer+"/.well-known/openid-configuration", nil)
	if err != nil {
		return "", err
	}
	resp, err := c.http.Do(req)
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
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxSaid)).Decode(&says); err != nil {
		return "", fmt.Errorf("its description cannot be read: %w", err)
	}
	u, err := webcall.Address(says.Tokens)
	if err != nil || strings.TrimSuffix(says.Issuer, "/") != c.issuer || u.Scheme == "http" && !strings.HasPrefix(c.issuer, "http:") {
		return "", extensions.Errorf(extensions.KindInvalid, "the OIDC issuer %s names no safe token address, or names itself differently",
			c.issuer).WithRemedy("check the issuer's address")
	}
	return u.String(), nil
}

// refusal says why there is no token.
func (c *Client) refusal(ctx context.Context, err error) error {
	words := func(text string) string {
		if c.secret != "" {
			text = strings.ReplaceAll(text, c.secret, "…")
		}
		return extensions.Clean(text, maxWords)
	}
	var known *extensions.Error
	var told *oauth2.RetrieveError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &known):
		return err
	case errors.As(err, &told) && told.Response != nil && told.Response.StatusCode >= 500:
		return extensions.Errorf(extensions.KindUnavailable, "the OIDC issuer gives no token now: %s", words(told.Response.Status)).
			WithRemedy("try again later")
	case errors.As(err, &told) && told.Response != nil:
		return extensions.Errorf(extensions.KindUnauthorized, "the OIDC issuer gives no token: %s %s", words(told.Response.Status),
			words(told.ErrorCode)).WithRemedy("check the issuer's address, the client's id and its secret")
	}
	return extensions.Errorf(extensions.KindUnreachable, "the OIDC issuer does not answer: %s", words(err.Error())).
		WithRemedy("check the network, and the issuer's address")
}
