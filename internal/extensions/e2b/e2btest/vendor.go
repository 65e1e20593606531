package e2btest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// Vendor is one account at the fake. Its methods may be called at any time from any goroutine.
type Vendor struct {
	*vendortest.Wire
	// APIURL and SandboxURL are the addresses of the control plane and of the gateway to all sandboxes, as the
	// vendor's SDK takes them in E2B_API_URL and E2B_SANDBOX_URL. Key is the account's API key.
	APIURL, SandboxURL, Key string
	// Domain is the one below which a request's host names a sandbox: 49983-<id>.<domain>.
	Domain string

	t         testing.TB
	shelf     *box.Shelf
	clock     *box.Clock
	api       *vendortest.Description
	daemonAPI *vendortest.Description

	mu        sync.Mutex
	plan      Plan
	listDelay time.Duration
	sandboxes map[string]*sandbox
	templates map[string]*template
	builds    map[string]*build
	images    map[string]bool // nil: every image exists
	listeners map[int]string  // port inside -> address here
	chosen    []string        // what the vendor chose, and a name for it: id, name, id, name …
	creates   int
	kept      int         // snapshots made so far
	recent    []time.Time // when creates were asked for
	serial    int
}

// Plan is what the account has bought. A zero field sets no limit.
type Plan struct {
	MaxHours         int // the longest life of one run of a sandbox
	Concurrent       int // running sandboxes
	CreatesPerSecond int
}

// Start runs a fake with one template, "base", until the test ends; then it fails the test if a process of a
// sandbox is left.
func Start(t testing.TB) *Vendor {
	t.Helper()
	v := &Vendor{Wire: vendortest.NewWire(t, "E2B"), t: t, Key: "e2b_" + fmt.Sprintf("%040x", time.Now().UnixNano()), Domain: "e2b.test",
		shelf: box.NewShelf(t), sandboxes: map[string]*sandbox{}, templates: map[string]*template{}, builds: map[string]*build{}}
	api, err1 := planeDescription()
	daemon, err2 := daemonDescription()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatalf("E2B's description: %v", err)
	}
	v.api, v.daemonAPI = api, daemon
	v.mu.Lock()
	clock, stop := box.NewClock(v.expire)
	v.clock = clock
	v.mu.Unlock()
	v.AddTemplate(Template{Name: "base", CPU: 2, MemoryMB: 512, DiskMB: 1024})
	plane, inside := httptest.NewServer(v.controlPlane()), httptest.NewServer(http.HandlerFunc(v.gateway))
	v.APIURL, v.SandboxURL = plane.URL, inside.URL
	t.Cleanup(func() {
		stop()
		v.closeStreams()
		plane.CloseClientConnections()
		inside.CloseClientConnections()
		plane.Close()
		inside.Close()
		v.sweep(t)
	})
	return v
}

// sweep ends what the test left, as the vendor would at its deadline.
func (v *Vendor) sweep(t testing.TB) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.sandboxes {
		if err := s.end(); err != nil {
			t.Errorf("sandbox %s: %v", s.id, err)
		}
	}
}

// Clock is the vendor's time: the machine's, and what was added to it.
func (v *Vendor) Clock() *box.Clock { return v.clock }

// SetPlan changes what the account has bought.
func (v *Vendor) SetPlan(p Plan) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.plan = p
}

// SetListDelay sets how long after its creation a sandbox appears in lists; it can be asked for by id at once.
func (v *Vendor) SetListDelay(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listDelay = d
}

// Listen says which address of this machine answers for a port of every sandbox; until then it is the same port.
func (v *Vendor) Listen(port int, address string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.listeners == nil {
		v.listeners = map[int]string{}
	}
	v.listeners[port] = address
}

// Creates counts the sandboxes made so far, whether or not they still exist and whether or not anybody heard.
func (v *Vendor) Creates() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.creates
}
