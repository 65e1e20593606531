// Package webcall is what every HTTP client of sandboxer shares: an address that is safe to send a secret to, a
// client that follows no redirect, whether a request may have arrived, and when to come again.
package webcall

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-cleanhttp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Address reads the address of a receiver: https, or http on this machine, with a host and perhaps a path. The
// error, KindInvalid, completes "the endpoint …"; it does not repeat the text, which may hold a password.
func Address(text string) (*url.URL, error) {
	u, err := Link(text)
	if err == nil && (u.RawQuery != "" || u.ForceQuery) {
		return nil, extensions.Errorf(extensions.KindInvalid, "has more than a host and a path")
	}
	return u, err
}

// Link is Address with a query, as of an address that a vendor has signed: whoever has it is let in, so no message
// may have it.
func Link(text string) (*url.URL, error) {
	bad := func(format string, args ...any) (*url.URL, error) {
		return nil, extensions.Errorf(extensions.KindInvalid, format, args...)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return bad("is not a URL")
	case u.User != nil || u.Fragment != "":
		return bad("has more than a host and a path")
	case u.Hostname() == "":
		return bad("has no host")
	case u.Scheme == "https", u.Scheme == "http" && onThisMachine(u.Hostname()):
		return u, nil
	case u.Scheme == "http":
		return bad("%s is not encrypted", extensions.Clean(u.Host, 200))
	}
	return bad("starts with %q", extensions.Clean(u.Scheme, 20))
}

func onThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Client returns a client that trusts the PEM authorities of ca, or the system's if there are none, and that
// takes a redirect for an answer: following it would carry what was sent, and the secrets, elsewhere.
func Client(ca []byte) (*http.Client, error) {
	transport := cleanhttp.DefaultPooledTransport()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			return nil, extensions.Errorf(extensions.KindInvalid, "the file of CA certificates has no certificate").WithRemedy("give a PEM file")
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// Sent follows the requests of one call, one after another, and knows whether one of them may have taken
// effect.
type Sent struct{ open, maybe atomic.Bool }

// Watch returns a context under which the call's requests are followed.
func (s *Sent) Watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() {
		if s.open.Swap(true) {
			s.maybe.Store(true) // the request before was never answered
		}
	}})
}

// Answered notes an answer, and whether the request may have taken effect according to it.
func (s *Sent) Answered(maybe bool) {
	s.open.Store(false)
	if maybe {
		s.maybe.Store(true)
	}
}

// Maybe reports whether a request may have taken effect: it may have arrived and has no answer, or its answer
// allows for it.
func (s *Sent) Maybe() bool { return s.open.Load() || s.maybe.Load() }

// RetryAfter reads the Retry-After header, in seconds or as a date; ok says that there is a valid one. A wait is
// never negative.
func RetryAfter(h http.Header) (wait time.Duration, ok bool) {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(max(n, 0)) * time.Second, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return max(time.Until(at), 0), true
}

// IsPage reports an answer meant for people: a login page, or that of some website, answers everything and
// does nothing.
func IsPage(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (media == "text/html" || media == "application/xhtml+xml")
}

// Untrusted reports a refusal of the other side's certificate.
func Untrusted(err error) bool {
	var cert *tls.CertificateVerificationError
	return errors.As(err, &cert)
}
