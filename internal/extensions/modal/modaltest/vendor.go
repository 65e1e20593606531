package modaltest

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/grpctest"
)

// Vendor is one workspace at the fake. Its methods may be called at any time from any goroutine.
type Vendor struct {
	*grpctest.Wire
	// URL is the address of the control plane. TokenID and TokenSecret are the workspace's token.
	URL, TokenID, TokenSecret string

	t     testing.TB
	shelf *box.Shelf
	clock *box.Clock
	front *front
	ports *httptest.Server

	mu        sync.Mutex
	plan      Plan
	listDelay time.Duration
	pageSize  int
	secure    bool // routers are told of as https
	sandboxes map[string]*sandbox
	apps      map[string]string // name -> id
	images    map[string]*image
	contents  map[string][]byte // of files of builds, by their hashes
	mounts    map[string][]*pb.MountFile
	listeners map[int]string              // port inside -> address here
	tunnels   map[string]*httptest.Server // by a sandbox's id and the port
	place     string                      // where new sandboxes run; "" = where they were asked for
	creates   int
	serial    int
	recent    []time.Time // when creates were asked for
}

// Plan is what the workspace has bought. A zero field sets no limit.
type Plan struct {
	Concurrent       int // live sandboxes
	CreatesPerSecond int
}

// Start runs a fake until the test ends.
func Start(t testing.TB) *Vendor {
	t.Helper()
	v := &Vendor{t: t, TokenID: "ak-" + random(11), TokenSecret: "as-" + random(11), shelf: box.NewShelf(t), pageSize: 100,
		sandboxes: map[string]*sandbox{}, apps: map[string]string{}, images: map[string]*image{},
		contents: map[string][]byte{}, mounts: map[string][]*pb.MountFile{}, listeners: map[int]string{}, tunnels: map[string]*httptest.Server{}}
	v.mu.Lock()
	clock, stop := box.NewClock(v.expire)
	v.clock = clock
	v.mu.Unlock()
	v.ports = httptest.NewServer(http.HandlerFunc(v.port))
	v.Wire = grpctest.NewWire(t, v.admit)
	v.front = v.newFront(nil)
	v.URL = v.front.planeURL
	t.Cleanup(func() {
		stop()
		v.cutAll()
		v.front.Stop()
		v.ports.CloseClientConnections()
		v.ports.Close()
		for _, tunnel := range v.tunnels {
			tunnel.Close()
		}
		for _, s := range v.all() {
			if err := s.finish(pb.GenericResult_GENERIC_STATUS_TERMINATED); err != nil {
				t.Errorf("sandbox %s: %v", s.id, err)
			}
		}
	})
	return v
}

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// Clock is the vendor's time: the machine's, and what was added to it.
func (v *Vendor) Clock() *box.Clock { return v.clock }

// SetPlan changes what the workspace has bought.
func (v *Vendor) SetPlan(p Plan) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.plan = p
}

// SetListDelay sets how long after a change lists show it; a sandbox can be asked for by name at once.
func (v *Vendor) SetListDelay(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listDelay = d
}

// SetPageSize sets how many sandboxes a list has at most.
func (v *Vendor) SetPageSize(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pageSize = n
}

// SecureRouters tells of the routers as of https ones. The vendor's own SDK takes no others, and speaks plainly to those of
// this machine all the same.
func (v *Vendor) SecureRouters() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.secure = true
}

// RunIn makes new sandboxes run at a place, as its cloud names it, wherever they are asked for.
func (v *Vendor) RunIn(place string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.place = place
}

// Listen says which address of this machine answers for a port of every sandbox.
func (v *Vendor) Listen(port int, address string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listeners[port] = address
}

// Creates counts the sandboxes that were asked for and made so far, whether or not anybody heard.
func (v *Vendor) Creates() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.creates
}

// Sandbox is what the vendor knows of a live one.
type Sandbox struct {
	ID, Name string
	Backend  int
	Tags     map[string]string
	Made     time.Time
	Ends     time.Time
	Asked    *pb.Sandbox // as it was created
}

// Sandboxes lists all that live, whether or not a list shows them yet.
func (v *Vendor) Sandboxes() (out []Sandbox) {
	v.expire()
	for _, s := range v.all() {
		if s.lives() {
			v.mu.Lock()
			tags := map[string]string{}
			for _, t := range s.tags {
				tags[t.GetTagName()] = t.GetTagValue()
			}
			v.mu.Unlock()
			out = append(out, Sandbox{ID: s.id, Name: s.asked.GetName(), Backend: s.backend, Tags: tags, Made: s.made, Ends: s.ends, Asked: s.asked})
		}
	}
	return out
}

// Snapshots lists the images that were made of sandboxes.
func (v *Vendor) Snapshots() (ids []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, i := range v.images {
		if i.snapshot {
			ids = append(ids, id)
		}
	}
	return ids
}

var errNoSuch = errors.New("the vendor has no such thing")

func (v *Vendor) live(id string) (*sandbox, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.sandboxes[id]; s != nil {
		return s, nil
	}
	return nil, errNoSuch
}

// Vanish ends a sandbox behind everybody's back.
func (v *Vendor) Vanish(id string) error {
	s, err := v.live(id)
	if err != nil {
		return err
	}
	return s.finish(pb.GenericResult_GENERIC_STATUS_INTERNAL_FAILURE)
}

// Relabel changes one tag of a sandbox behind everybody's back.
func (v *Vendor) Relabel(id, name, value string) error {
	s, err := v.live(id)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, t := range s.tags {
		if t.GetTagName() == name {
			s.tags[i] = pb.SandboxTag_builder{TagName: name, TagValue: value}.Build()
		}
	}
	return nil
}

// Sever breaks every stream out of a sandbox; it goes on running.
func (v *Vendor) Sever(id string) error {
	s, err := v.live(id)
	if err != nil {
		return err
	}
	s.sever()
	return nil
}

// Shut makes the vendor unreachable for good.
func (v *Vendor) Shut() { v.front.Shut() }

func (v *Vendor) all() (out []*sandbox) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.sandboxes {
		out = append(out, s)
	}
	return out
}

func (v *Vendor) cutAll() {
	for _, s := range v.all() {
		s.sever()
	}
}

// expire ends what is overdue.
func (v *Vendor) expire() {
	v.mu.Lock()
	now := v.clock.Now()
	v.mu.Unlock()
	for _, s := range v.all() {
		if s.lives() && !now.Before(s.ends) {
			if err := s.finish(pb.GenericResult_GENERIC_STATUS_TIMEOUT); err != nil {
				v.t.Errorf("the deadline of %s: %v", s.id, err)
			}
		}
	}
}
