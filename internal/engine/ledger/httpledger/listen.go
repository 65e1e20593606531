package httpledger

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Listening says where a server is reached.
type Listening struct {
	Address string // host:port; port 0 takes a free one
	// Certificate and Key are PEM files, read again when they have changed.
	// Without them only this machine is served, and without encryption.
	Certificate, Key string
	// Connections bounds how many there may be at once; 0 = 4096.
	Connections int
	// Ready is told the address once requests are answered; may be nil.
	Ready func(url string)
	Log   *slog.Logger
}

// Times of a connection. An answer may take as long as an operation.
const (
	headerTime   = 10 * time.Second
	requestTime  = time.Minute
	idleTime     = 2 * time.Minute
	shutdownTime = 20 * time.Second
)

// maxConnections is how many there may be at once, with a token or without:
// others wait to be taken. A client keeps 8 at most.
const maxConnections = 4096

// Serve answers requests until ctx ends, then finishes those under way.
func Serve(ctx context.Context, h http.Handler, l Listening) error {
	scheme, config, err := l.tls()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.Address)
	if err != nil {
		return oops(extensions.KindUnavailable, "listening on %s: %w", l.Address, err).WithRemedy("choose another address with --listen")
	}
	listener = netutil.LimitListener(listener, cmp.Or(l.Connections, maxConnections))
	s := &http.Server{Handler: h, TLSConfig: config, ReadHeaderTimeout: headerTime, ReadTimeout: requestTime,
		WriteTimeout: requestTime + operationLimit, IdleTimeout: idleTime, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(l.Log.Handler(), slog.LevelWarn)}
	if l.Ready != nil {
		l.Ready(scheme + "://" + listener.Addr().String())
	}
	served := make(chan error, 1)
	go func() {
		if config != nil {
			served <- s.ServeTLS(listener, "", "")
		} else {
			served <- s.Serve(listener)
		}
	}()
	select {
	case err := <-served:
		return oops(extensions.KindUnavailable, "serving: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err = s.Shutdown(end)
	if err != nil {
		err = errors.Join(err, s.Close())
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// tls reads the certificate, and refuses to serve a network without one.
func (l Listening) tls() (scheme string, _ *tls.Config, err error) {
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return "", nil, oops(extensions.KindInvalid, "the address to listen on is not host:port: %w", err).WithRemedy("write it as 127.0.0.1:7777")
	}
	switch {
	case (l.Certificate == "") != (l.Key == ""):
		return "", nil, oops(extensions.KindInvalid, "a certificate needs its key, and a key its certificate").WithRemedy("set both --tls-cert and --tls-key")
	case l.Certificate == "" && !loopback(host):
		return "", nil, oops(extensions.KindInvalid, "%s can be reached from elsewhere, and nothing crosses a network in the clear", l.Address).
			WithRemedy("set --tls-cert and --tls-key, or listen on 127.0.0.1")
	case l.Certificate == "":
		return "http", nil, nil
	}
	c := &certificate{cert: l.Certificate, key: l.Key}
	if _, err := c.get(nil); err != nil {
		return "", nil, oops(extensions.KindInvalid, "the certificate cannot be used: %w", err).WithRemedy("check --tls-cert and --tls-key")
	}
	return "https", &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

// certificate is read from its files again when they have changed, so that it
// can be renewed while the server runs.
type certificate struct {
	cert, key string

	mu      sync.Mutex
	changed [2]time.Time
	now     *tls.Certificate
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var changed [2]time.Time
	for i, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return c.or(err)
		}
		changed[i] = info.ModTime()
	}
	if c.now != nil && changed == c.changed {
		return c.now, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return c.or(err) // half renewed: the next handshake looks again
	}
	c.now, c.changed = &pair, changed
	return c.now, nil
}

// or is the certificate there was.
func (c *certificate) or(err error) (*tls.Certificate, error) {
	if c.now != nil {
		return c.now, nil
	}
	return nil, err
}
