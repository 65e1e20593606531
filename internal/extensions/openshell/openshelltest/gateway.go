package openshelltest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"math"
	"net/http/httptest"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/grpctest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// Gateway is a fake one. Its methods may be called at any time from any goroutine.
type Gateway struct {
	*grpctest.Wire
	// URL is its address.
	URL string
	// Issuer is the address of its OIDC issuer, ClientID and Secret what that knows the client by; "" = it has none.
	Issuer, ClientID, Secret string
	// Folder has the certificates of a client of mutual TLS; "" = it has none.
	Folder string

	t      testing.TB
	shelf  *box.Shelf
	front  *grpctest.Front
	issuer *httptest.Server
	token  string // the issuer's
	tls    *tls.Config

	mu        sync.Mutex
	pageSize  int
	stuck     bool // each page is the first
	load      func(want *gateway.SandboxPolicy) Load
	images    map[string]map[string]string
	sandboxes map[string]*sandbox // by the gateway's id
	creates   int
	serial    int
}

// Load is what becomes of a policy.
type Load struct {
	Status  gateway.PolicyStatus
	Error   string
	Version uint32 // the newest
	Active  uint32
	Global  bool                   // the gateway's own policy counts
	Policy  *gateway.SandboxPolicy // the active one
}

// Way is how callers are known.
type Way int

// The ways of Start.
const (
	Plain Way = iota // everybody of this machine
	OIDC
	MutualTLS
)

// Start runs a fake until the test ends.
func Start(t testing.TB, way Way) *Gateway {
	t.Helper()
	g := &Gateway{t: t, shelf: box.NewShelf(t), pageSize: 100, images: map[string]map[string]string{}, sandboxes: map[string]*sandbox{},
		load: Loaded}
	switch way {
	case OIDC:
		g.startIssuer()
	case MutualTLS:
		g.certify(t)
	case Plain:
	}
	g.Wire = grpctest.NewWire(t, g.admit)
	g.front, g.URL = g.newFront(nil)
	t.Cleanup(func() {
		for _, s := range g.all() {
			s.sever()
		}
		g.front.Stop()
		if g.issuer != nil {
			g.issuer.Close()
		}
		for _, s := range g.all() {
			if err := s.remove(); err != nil {
				t.Errorf("sandbox %s: %v", s.id, err)
			}
		}
	})
	return g
}

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// SetPageSize sets how many sandboxes one call lists at most.
func (g *Gateway) SetPageSize(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pageSize = n
}

// StickPages answers every page with the first one from now on.
func (g *Gateway) StickPages() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stuck = true
}

// Loaded is how a gateway loads every policy unless SetLoad says otherwise.
func Loaded(want *gateway.SandboxPolicy) Load {
	return Load{Status: gateway.PolicyStatus_POLICY_STATUS_LOADED, Version: 1, Active: 1, Policy: want}
}

// SetLoad says what becomes of the policies of sandboxes from now on.
func (g *Gateway) SetLoad(load func(want *gateway.SandboxPolicy) Load) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.load = load
}

// SetImage makes an image of that name with these files beside the usual ones.
func (g *Gateway) SetImage(name string, files map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.images[name] = files
}

// Creates counts the sandboxes that were made so far, whether or not anybody heard.
func (g *Gateway) Creates() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.creates
}

// Sandboxes lists all that there are, as they are told.
func (g *Gateway) Sandboxes() (out []*gateway.Sandbox) {
	for _, s := range g.all() {
		if s.there() {
			out = append(out, s.told())
		}
	}
	return out
}

var errNoSuch = errors.New("the gateway has no such sandbox")

func (g *Gateway) the(id string) (*sandbox, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.sandboxes[id]; s != nil {
		return s, nil
	}
	return nil, errNoSuch
}

// Vanish removes a sandbox behind everybody's back.
func (g *Gateway) Vanish(id string) error {
	s, err := g.the(id)
	if err != nil {
		return err
	}
	g.forget(s)
	return s.remove()
}

// Relabel changes one label of a sandbox behind everybody's back.
func (g *Gateway) Relabel(id, name, value string) error {
	s, err := g.the(id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta = proto.CloneOf(s.meta)
	s.meta.Labels[name] = value
	return nil
}

// Phase sets what a sandbox is in behind everybody's back.
func (g *Gateway) Phase(id string, phase gateway.SandboxPhase) error {
	s, err := g.the(id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.moved = phase, math.MaxInt
	return nil
}

// Sever breaks every stream out of a sandbox; it goes on running.
func (g *Gateway) Sever(id string) error {
	s, err := g.the(id)
	if err != nil {
		return err
	}
	s.sever()
	return nil
}

// Shut makes the gateway unreachable for good.
func (g *Gateway) Shut() { g.front.Shut() }

// newFront returns one more way to the gateway.
func (g *Gateway) newFront(k *vendortest.Killer) (f *grpctest.Front, url string) {
	f = g.Front(k)
	return f, f.Serve(g.tls, func(s *grpc.Server) { gateway.RegisterOpenShellServer(s, plane{g: g}) })
}

// admit lets in who has a token of the issuer, where there is one; TLS has asked for the certificate.
func (g *Gateway) admit(ctx context.Context, _ string) error {
	header, _ := metadata.FromIncomingContext(ctx)
	if got := header.Get("authorization"); g.issuer != nil && (len(got) != 1 || got[0] != "Bearer "+g.token) {
		return status.Error(codes.Unauthenticated, "missing or invalid bearer token")
	}
	return nil
}

func (g *Gateway) all() (out []*sandbox) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sandboxes {
		out = append(out, s)
	}
	return out
}

func (g *Gateway) forget(s *sandbox) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sandboxes, s.id)
}
