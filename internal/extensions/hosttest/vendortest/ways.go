package vendortest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Gate stands before an address and can be shut for good.
type Gate struct {
	URL   string
	front net.Listener
	mu    sync.Mutex
	open  map[net.Conn]bool
}

// NewGate opens one to an address of plain HTTP, until the test ends.
func NewGate(t testing.TB, to string) *Gate {
	t.Helper()
	front, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	g := &Gate{URL: "http://" + front.Addr().String(), front: front, open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := front.Accept()
			if err != nil {
				return
			}
			all.Go(func() { g.pass(c, strings.TrimPrefix(to, "http://")) })
		}
	})
	t.Cleanup(func() {
		g.Shut()
		all.Wait()
	})
	return g
}

func (g *Gate) pass(c net.Conn, to string) {
	defer func() { _ = c.Close() }()
	there, err := new(net.Dialer).DialContext(context.Background(), "tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = there.Close() }()
	g.mu.Lock()
	g.open[c] = true
	g.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(there, c); _ = there.Close() })
	both.Go(func() { _, _ = io.Copy(c, there); _ = c.Close() })
	both.Wait()
	g.mu.Lock()
	delete(g.open, c)
	g.mu.Unlock()
}

// Shut breaks all connections and takes no more.
func (g *Gate) Shut() {
	_ = g.front.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		_ = c.Close()
	}
}

// Pager stands before a vendor's interface and can make its listings short, or break them.
type Pager struct {
	URL          string
	Size         atomic.Int64 // of a page; 0 = as asked for
	Repeat, Fail atomic.Bool  // the next page is the one before; it is no page
}

// NewPager stands before to until the test ends. list is the path of listings, and cursor the query that asks for the next
// page of one.
func NewPager(t testing.TB, to, list, cursor string) *Pager {
	t.Helper()
	p, proxy := &Pager{}, passing(t, to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q, n := r.URL.Query(), p.Size.Load(); n > 0 && r.URL.Path == list && r.Method == http.MethodGet {
			if q.Get(cursor) != "" && p.Fail.Load() {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			if p.Repeat.Load() {
				q.Del(cursor)
			}
			q.Set("limit", strconv.FormatInt(n, 10))
			r.URL.RawQuery = q.Encode()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	p.URL = s.URL
	return p
}

// Visit asks for a port inside as anybody on the network would: the host of its address leads to the gateway of all, and
// header opens it. A server of the test's own listens where the port would be, because sandboxes of fakes have the
// machine's network; listen tells the fake so. It reports whether that server answered.
func Visit(t testing.TB, gateway string, listen func(port int, address string), port int, address string, header extensions.Header) bool {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "from inside") }))
	defer inside.Close()
	listen(port, inside.Listener.Addr().String())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gateway, nil)
	must(t, err)
	if req.Host = u.Host; header.Name != "" {
		req.Header.Set(header.Name, header.Value.Reveal())
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return string(body) == "from inside"
}
