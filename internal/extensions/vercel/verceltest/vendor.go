package verceltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// Vendor is one project at the fake. Its methods may be called at any time from any goroutine.
type Vendor struct {
	*vendortest.Wire
	// APIURL is what stands for https://vercel.com/api, and GatewayURL what answers for all routes, told apart by the host.
	APIURL, GatewayURL   string
	Token, Team, Project string

	t     testing.TB
	shelf *box.Shelf
	clock *box.Clock
	api   *vendortest.Description

	mu        sync.Mutex
	plan      Plan
	lag       Lag
	sandboxes map[string]*sandbox
	snapshots map[string]*snapshot
	listeners map[int]string // port inside -> address here
	creates   int
	recent    []time.Time // when vCPUs were asked for, one entry each
	serial    int
}

// Plan is what the team has bought. A zero field sets no limit.
type Plan struct {
	Longest       time.Duration // of a sandbox
	Concurrent    int           // sandboxes that run
	VCPUsPerCycle int           // new vCPUs per minute
	Region        string        // where sandboxes run whatever was asked for; "" = as asked
}

// Lag is how long what the vendor does takes to be seen, by its clock.
type Lag struct {
	Begin, Stop, List time.Duration
}

// Start runs a fake until the test ends; then it fails the test if a process of a sandbox is left.
func Start(t testing.TB) *Vendor {
	t.Helper()
	v := &Vendor{Wire: vendortest.NewWire(t, "Vercel"), t: t, Token: fmt.Sprintf("vcp_%040x", time.Now().UnixNano()),
		Team: "team_" + letters(20), Project: "prj_" + letters(20),
		shelf: box.NewShelf(t), sandboxes: map[string]*sandbox{}, snapshots: map[string]*snapshot{}, listeners: map[int]string{}}
	api, err := described()
	if err != nil {
		t.Fatalf("Vercel's description: %v", err)
	}
	v.api = api
	v.mu.Lock()
	clock, stop := box.NewClock(v.tick)
	v.clock = clock
	v.mu.Unlock()
	plane, gateway := httptest.NewServer(v.plane()), httptest.NewServer(http.HandlerFunc(v.gateway))
	v.APIURL, v.GatewayURL = plane.URL, gateway.URL
	t.Cleanup(func() {
		stop()
		plane.CloseClientConnections()
		gateway.CloseClientConnections()
		v.mu.Lock()
		for _, s := range v.sandboxes {
			if err := s.Remove(); err != nil {
				t.Errorf("sandbox %s: %v", s.name, err)
			}
		}
		v.mu.Unlock()
		plane.Close()
		gateway.Close()
	})
	return v
}

// OIDC is a token that says itself which team and project it opens.
func (v *Vendor) OIDC() string {
	part := func(of any) string {
		b, _ := json.Marshal(of) // plain maps
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return part(map[string]any{"alg": "RS256"}) + "." + part(map[string]any{"owner_id": v.Team, "project_id": v.Project}) + "." + v.Token
}

// Clock is the vendor's time: the machine's, and what was added to it.
func (v *Vendor) Clock() *box.Clock { return v.clock }

// SetPlan changes what the team has bought.
func (v *Vendor) SetPlan(p Plan) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.plan = p
}

// SetLag changes how long things take.
func (v *Vendor) SetLag(l Lag) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lag = l
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
