package daytonatest

import (
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// Vendor is one organization at the fake. Its methods may be called at any time from any goroutine.
type Vendor struct {
	*vendortest.Wire
	// APIURL and ToolboxURL are the addresses of the API and of the proxy in front of all sandboxes. Key is an API key,
	// JWT with Organization the other way in.
	APIURL, ToolboxURL     string
	Key, JWT, Organization string
	// Domain is the one below which a request's host names a port: 3000-<id>.<domain>.
	Domain string

	t           testing.TB
	cloud       bool
	shelf       *box.Shelf
	clock       *box.Clock
	api, inside *vendortest.Description

	mu        sync.Mutex
	plan      Plan
	listLag   time.Duration
	misplace  string // where the next sandbox is made, wherever it was asked for
	slow      int    // looks that creating and destroying take
	sandboxes map[string]*sandbox
	snapshots map[string]*snapshot
	stored    map[string][]byte // of the store, by key
	puts      int
	noDesktop bool
	storeURL  string
	gone      map[string]listed // what lists still show
	listeners map[int]string    // port inside -> address here
	commands  []string
	creates   int
	recent    []time.Time // when creates were asked for
	serial    int
}

// Plan is what the organization may have. A zero field sets no limit.
type Plan struct {
	CPU, MemoryGiB, DiskGiB int // of all its sandboxes
	CreatesPerMinute        int
	MaxTTL                  time.Duration // of one sandbox; a longer one is cut without a word; below 0, none is kept
}

// Start runs a fake of the cloud until the test ends; then it fails the test if a process of a sandbox is left.
func Start(t testing.TB) *Vendor { return start(t, true) }

// StartSelfHosted is Start for version 0.190.
func StartSelfHosted(t testing.TB) *Vendor { return start(t, false) }

func start(t testing.TB, cloud bool) *Vendor {
	t.Helper()
	v := &Vendor{Wire: vendortest.NewWire(t, "Daytona"), t: t, cloud: cloud,
		Key: fmt.Sprintf("dtn_%040x", time.Now().UnixNano()), JWT: fmt.Sprintf("ey%040x", time.Now().UnixNano()),
		Organization: "1b6e9a52-0000-4000-8000-00000000a11c", Domain: "proxy.daytona.test", shelf: box.NewShelf(t), slow: 1,
		sandboxes: map[string]*sandbox{}, snapshots: own(cloud), stored: map[string][]byte{}, gone: map[string]listed{},
		listeners: map[int]string{}}
	var err error
	if v.api, v.inside, err = descriptions(cloud); err != nil {
		t.Fatalf("Daytona's description: %v", err)
	}
	v.mu.Lock()
	clock, stop := box.NewClock(v.expire)
	v.clock = clock
	v.mu.Unlock()
	plane, proxy, store := httptest.NewServer(v.plane()), httptest.NewServer(v.proxy()), httptest.NewServer(v.store())
	v.APIURL, v.ToolboxURL, v.storeURL = plane.URL, proxy.URL, store.URL
	t.Cleanup(func() {
		stop()
		v.mu.Lock()
		left, kept := v.sandboxes, v.snapshots
		v.sandboxes, v.snapshots = map[string]*sandbox{}, map[string]*snapshot{}
		v.mu.Unlock()
		for _, k := range kept {
			if k.Box != nil {
				v.do(k.Remove())
			}
		}
		for _, s := range left {
			if err := s.Remove(); err != nil {
				t.Errorf("sandbox %s: %v", s.id, err)
			}
		}
		for _, server := range []*httptest.Server{plane, proxy, store} {
			server.CloseClientConnections()
			server.Close()
		}
	})
	return v
}

// Clock is the vendor's time: the machine's, and what was added to it.
func (v *Vendor) Clock() *box.Clock { return v.clock }

// SetPlan changes what the organization may have.
func (v *Vendor) SetPlan(p Plan) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.plan = p
}

// SetListLag sets how long lists lack a change.
func (v *Vendor) SetListLag(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listLag = d
}

// SetSlow sets how many looks at a sandbox its creation and its end take each; below 0, they never end.
func (v *Vendor) SetSlow(looks int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.slow = looks
}

// Misplace makes the next sandbox be in a region, wherever it was asked for.
func (v *Vendor) Misplace(region string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.misplace = region
}

// Listen says which address of this machine answers for a port of every sandbox.
func (v *Vendor) Listen(port int, address string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listeners[port] = address
}

// Creates counts the sandboxes made so far, whether or not they still exist and whether or not anybody heard.
func (v *Vendor) Creates() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.creates
}

// Commands are the command lines that toolboxes got so far: the vendor may record them.
func (v *Vendor) Commands() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string{}, v.commands...)
}

// Sandboxes are the answers to a look at each, by id.
func (v *Vendor) Sandboxes() map[string]map[string]any {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := map[string]map[string]any{}
	for id, s := range v.sandboxes {
		all[id] = v.shown(s, "Sandbox")
	}
	return all
}

// Vanish destroys a sandbox behind everybody's back.
func (v *Vendor) Vanish(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.sandboxes[id]; s != nil {
		v.remove(s)
	}
}

// Relabel changes a label of a sandbox.
func (v *Vendor) Relabel(id, key, value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sandboxes[id].labels[key] = value
}

// SetState makes a sandbox be in a state, with a reason for errors.
func (v *Vendor) SetState(id, state, reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sandboxes[id].state, v.sandboxes[id].reason, v.sandboxes[id].looks = state, reason, -1
}
