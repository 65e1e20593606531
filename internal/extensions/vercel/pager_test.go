package vercel_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
)

// pager stands before a control plane and can make its listings short, or break them.
type pager struct {
	*httptest.Server
	size         atomic.Int64 // of a page; 0 = as asked for
	repeat, fail atomic.Bool  // the next page is the one before; it is no page
}

func pagerTo(t testing.TB, address string) *pager {
	t.Helper()
	to, err := url.Parse(address)
	must(t, err)
	p := &pager{}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q, n := r.URL.Query(), p.size.Load(); n > 0 && r.URL.Path == "/v2/sandboxes" {
			if q.Get("cursor") != "" && p.fail.Load() {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			if p.repeat.Load() {
				q.Del("cursor")
			}
			q.Set("limit", strconv.FormatInt(n, 10))
			r.URL.RawQuery = q.Encode()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}
