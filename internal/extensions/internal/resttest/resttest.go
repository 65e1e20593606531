// Package resttest is one suite of faults for all adapters of vendors that speak JSON over HTTP: what gateways,
// proxies and vendors answer when something is wrong. It stands between the adapter and a vendor that works.
//
// An adapter must tell what was refused from what may have happened, take nothing for absent that the vendor
// itself did not call so, repeat no call, and end in bounded time and memory.
package resttest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// Harness is what the suite must know about one adapter. All fields are required.
type Harness struct {
	New func() extensions.Extension
	// Vendor starts a vendor of the check's own and returns the address of its control plane, and a configuration
	// for an address in front of it.
	Vendor func(t testing.TB) (address string, config func(front string) extensions.Config)
	// Secret is what the configuration's credential contains.
	Secret func(cfg extensions.Config) string
	// IsCreate, IsEnd and IsList recognize requests of the adapter.
	IsCreate, IsEnd, IsList func(r *http.Request) bool
	// Quota answers a create beyond the account's quota, as the vendor does.
	Quota http.HandlerFunc
	// Page answers a listing with an empty page and the token of another.
	Page func(w http.ResponseWriter, next string)
	// Other changes the body of an answer about one sandbox so that it is about another.
	Other func(body []byte) []byte
}

// limit is how long a call may take against a vendor that answers at once, wrongly or not.
const limit = 3 * time.Minute

// front stands between one adapter and its vendor.
type front struct {
	testing.TB
	h       Harness
	cfg     extensions.Config
	b       extensions.Backend
	vendor  *httputil.ReverseProxy
	server  *httptest.Server
	mu      sync.Mutex
	fault   http.HandlerFunc
	on      func(*http.Request) bool
	creates atomic.Int64
	all     atomic.Int64
}

// stand starts a vendor and opens the adapter at it.
func stand(t testing.TB, h Harness, start func(*httptest.Server)) *front {
	t.Helper()
	address, config := h.Vendor(t)
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{TB: t, h: h, vendor: httputil.NewSingleHostReverseProxy(to)}
	f.vendor.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { panic(http.ErrAbortHandler) }
	f.server = httptest.NewUnstartedServer(f)
	f.server.Config.ErrorLog = quiet
	start(f.server)
	t.Cleanup(f.server.Close)
	f.cfg = config(f.server.URL)
	if f.b, err = h.New().Open(t.Context(), f.cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.b.Close() })
	return f
}

// ServeHTTP passes a request on, or lets the fault answer.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.all.Add(1)
	if f.h.IsCreate(r) {
		f.creates.Add(1)
	}
	f.mu.Lock()
	fault := f.fault
	if fault != nil && f.on != nil && !f.on(r) {
		fault = nil
	}
	f.mu.Unlock()
	if fault != nil {
		fault(w, r)
		return
	}
	f.vendor.ServeHTTP(w, r)
}

// strike lets a fault answer the requests that on recognizes; nil = all.
func (f *front) strike(fault http.HandlerFunc, on func(*http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.on = fault, on
}

// made makes a sandbox, which is removed at the end.
func (f *front) made() extensions.Handle {
	f.Helper()
	spec := exttest.Spec(f, f.cfg)
	h, _, err := f.b.Provision(f.Context(), spec)
	if err != nil {
		f.Fatalf("provision without a fault: %v", err)
	}
	f.Cleanup(func() { f.remove(h) })
	return h
}

func (f *front) remove(h extensions.Handle) {
	f.strike(nil, nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.Context()), limit)
	defer cancel()
	if _, err := f.b.Teardown(ctx, h); err != nil && !extensions.IsKind(err, extensions.KindIndeterminate) {
		f.Errorf("teardown without a fault: %v", err)
	}
}
