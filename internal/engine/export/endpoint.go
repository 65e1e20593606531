package export

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/hashicorp/go-cleanhttp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Target says where events go. The zero Token sends none.
type Target struct {
	URL string // of the receiver; without a path, /api/v1/events is added
	// Sink names the receiver in the ledger; "" takes the URL. Who moves a
	// receiver to another address keeps its name.
	Sink  string
	Token string // a bearer token
	// CA is PEM of authorities to trust instead of the system's.
	CA []byte
}

// eventsPath is where OpenMeter and what is compatible with it take events.
const eventsPath = "/api/v1/events"

// endpoint is a checked Target.
type endpoint struct {
	url, sink, token string
	client           *http.Client
}

func newEndpoint(t Target) (*endpoint, error) {
	bad := func(format string, args ...any) (*endpoint, error) {
		return nil, extensions.Errorf(extensions.KindInvalid, "the endpoint "+format, args...).
			WithRemedy("write it as https://host/path; a token comes from the environment or a file")
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return bad("is not a URL")
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return bad("has more than a host and a path")
	}
	if u.Host == "" || u.Hostname() == "" {
		return bad("names no host")
	}
	switch {
	case u.Scheme == "https", u.Scheme == "http" && onThisMachine(u.Hostname()):
	case u.Scheme == "http":
		return bad("%s is not encrypted", u.Host)
	default:
		return bad("starts with %q", extensions.Clean(u.Scheme, 20))
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = eventsPath
	}
	if strings.ContainsFunc(t.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, extensions.Errorf(extensions.KindInvalid, "the token has white space or other characters that no header can carry")
	}
	e := &endpoint{url: u.String(), sink: t.Sink, token: t.Token}
	if e.sink == "" {
		e.sink = e.url
	}
	e.client, err = newClient(t.CA)
	return e, err
}

func onThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func newClient(ca []byte) (*http.Client, error) {
	transport := cleanhttp.DefaultPooledTransport()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			return nil, extensions.Errorf(extensions.KindInvalid, "there is no certificate in the file of authorities").WithRemedy("name a file in PEM form")
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{
		Transport: transport,
		// A redirect would carry the events, and the token, to somewhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
