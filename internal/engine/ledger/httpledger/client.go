package httpledger

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// EnvCA names a file with the certificates to trust, unless the address has one.
const EnvCA = "SANDBOXER_LEDGER_CA"

const (
	// attemptLimit ends one attempt; a server may wait a minute for its turn.
	attemptLimit = 75 * time.Second
	// patience is how long attempts that fail are begun anew.
	patience = 5 * time.Second
	dialTime = 10 * time.Second
)

// Client is a ledger that a server gives out.
type Client struct {
	place    place
	token    extensions.Secret
	readOnly bool
	term     time.Duration
	now      func() time.Time
	http     *retryablehttp.Client
	hello    welcome
	clock    clock

	mu     sync.Mutex
	holder *held
	closed bool
}

var _ ledger.Ledger = (*Client)(nil)

// held is this client's own holder.
type held struct {
	*lease.Lease
	id ledger.HolderID
}

// Open finds the server at https://host, and http://host on this machine, and
// asks it which ledger it gives out. The token is that of the options, else of the environment. Times
// are the server's, and what the options' clock says is compared with them; the
// sinks are the server's matter.
func Open(ctx context.Context, address string, o ledger.Options) (*Client, error) {
	p, err := parse(address)
	if err != nil {
		return nil, err
	}
	token, err := credential(o.Token)
	if err != nil {
		return nil, err
	}
	if p.ca == "" {
		p.ca = os.Getenv(EnvCA)
	}
	c := &Client{place: p, token: token, readOnly: o.ReadOnly, term: lease.Term(o.Lease), now: o.Now}
	if c.now == nil {
		c.now = time.Now
	}
	transport, err := p.transport()
	if err != nil {
		return nil, err
	}
	c.http = &retryablehttp.Client{
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		RetryMax:   1 << 10, RetryWaitMin: 20 * time.Millisecond, RetryWaitMax: time.Second,
		CheckRetry: again, Backoff: pause, ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	if c.hello, err = ask[welcome](ctx, c, opHello, nothing{}); err != nil {
		c.http.HTTPClient.CloseIdleConnections()
		return nil, err
	}
	return c, nil
}

// transport trusts what the system trusts, or the one CA that was named.
func (p place) transport() (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: dialTime}).DialContext
	t.TLSHandshakeTimeout = dialTime
	t.MaxIdleConnsPerHost = 8
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if p.ca == "" {
		return t, nil
	}
	pem, err := os.ReadFile(p.ca)
	if err != nil {
		return nil, oops(extensions.KindInvalid, "the CA of the ledger cannot be read: %w", err).WithRemedy("check ca in the address, or %s", EnvCA)
	}
	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
		return nil, oops(extensions.KindInvalid, "%s holds no certificate", p.ca).WithRemedy("name a file of PEM certificates")
	}
	return t, nil
}

// ID implements ledger.Ledger.
func (c *Client) ID() string { return c.hello.Ledger }

// Covers implements ledger.Scoped.
func (c *Client) Covers(account string) error {
	own := c.hello.Account
	if own == "" || account == own || ledger.StreamOf(own) == own && ledger.StreamOf(account) == own {
		return nil
	}
	return oops(extensions.KindUnauthorized, "the token for the ledger %s is for the account %s, not for %q", c.URL(), own, extensions.Clean(account, 130)).
		WithRemedy("set account to %s, or use a token of the other account", ledger.ScopeOf(own))
}

// URL implements ledger.Ledger.
func (c *Client) URL() string { return c.place.base }

// Holder implements ledger.Ledger: the server keeps a lease, which this client
// renews.
func (c *Client) Holder(ctx context.Context) (ledger.HolderID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return "", oops(extensions.KindInternal, "the ledger %s is closed", c.URL())
	}
	if c.holder != nil {
		return c.holder.id, nil
	}
	if c.readOnly {
		return "", c.onlyReads()
	}
	var id ledger.HolderID
	kept, err := lease.Keep(ctx, c.term, func(ctx context.Context) (err error) {
		// A lease that was given and not heard of runs out: it may be given up.
		id, err = ask[ledger.HolderID](ctx, c, opHolder, holding{ID: id, Term: c.term})
		return err
	})
	if err != nil {
		return "", err
	}
	c.holder = &held{kept, id}
	return id, nil
}

// Guard implements ledger.Ledger.
func (c *Client) Guard(ctx context.Context) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	h := c.holder
	c.mu.Unlock()
	if h == nil {
		return context.WithCancel(ctx)
	}
	return lease.Guard(ctx, h.Left, ledger.TakenForDead(c.URL()))
}

// Close implements ledger.Ledger.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if h := c.holder; h != nil {
		h.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), dialTime)
		defer cancel()
		// What cannot be given up runs out by itself.
		_, _ = ask[ledger.HolderID](ctx, c, opHolder, holding{ID: h.id})
	}
	c.http.HTTPClient.CloseIdleConnections()
	return nil
}
