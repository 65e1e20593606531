package httpledger

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// shop is a server over a new SQLite ledger, and a client of it.
type shop struct {
	*Client
	base ledger.Ledger
	at   *httptest.Server
}

// newShop lets between see each request before the server does.
func newShop(t testing.TB, between func(http.Handler) http.Handler) *shop {
	t.Helper()
	base, err := ledger.Open(context.Background(), ledger.DefaultURL(filepath.Join(t.TempDir(), "state")), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server, err := unbounded(base)
	if err != nil {
		t.Fatal(err)
	}
	var h http.Handler = server
	if between != nil {
		h = between(server)
	}
	s := &shop{base: base, at: httptest.NewTLSServer(h)}
	t.Cleanup(func() {
		if s.Client != nil {
			_ = s.Close()
		}
		s.at.Close()
		_ = base.Close()
	})
	if s.Client, err = openTo(context.Background(), s.at, t.TempDir(), ledger.Options{Lease: 3 * time.Second}); err != nil {
		t.Fatal(err)
	}
	return s
}

// aLife takes one sandbox through its states, with keys that are its own.
func aLife(ctx context.Context, l ledger.Ledger, id extensions.ID) error {
	holder, err := l.Holder(ctx)
	if err != nil {
		return err
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, err := l.Begin(ctx, ledger.Begin{Key: string(id), Holder: holder, ID: id, Account: "acme/web", Name: string(id), CreatedAt: now, TTL: time.Hour, ExpiresAt: now.Add(time.Hour)})
	for _, to := range []lifecycle.State{lifecycle.Provisioning, lifecycle.Ready, lifecycle.Destroying, lifecycle.Destroyed} {
		if err != nil {
			return err
		}
		c := ledger.Change{ID: id, Key: string(id) + string(to), Expect: ledger.Expect{Fence: s.Fence}, To: to}
		switch to {
		case lifecycle.Ready:
			c.Finish = &ledger.FinishIntent{Outcome: ledger.Confirmed}
			c.Meter.Open = &ledger.MeterOpen{At: now, Source: "backend"}
		case lifecycle.Destroying:
			c.Intent = &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: holder}
		case lifecycle.Destroyed:
			c.Finish = &ledger.FinishIntent{Outcome: ledger.Confirmed}
			c.Meter.Close = &ledger.MeterClose{At: now.Add(time.Minute), Source: "backend"}
		}
		s, err = l.Apply(ctx, c)
	}
	return err
}

// How an exchange is lost.
const (
	before   = "before it is carried out"
	unsaid   = "before it is answered"
	halfSaid = "in the middle of the answer"
)

// cutting loses the nth exchange from now on.
type cutting struct {
	mu   sync.Mutex
	left int
	how  string
	cuts int
}

func (c *cutting) next() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left != 0 {
		return ""
	}
	c.cuts++
	return c.how
}

func (c *cutting) between(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		how := c.next()
		switch how {
		case "":
			h.ServeHTTP(w, r)
			return
		case before:
		default:
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			if how == halfSaid {
				w.Header().Set("Content-Type", contentType)
				w.Header().Set("Content-Length", "1000000")
				_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
				w.(http.Flusher).Flush()
			}
		}
		panic(http.ErrAbortHandler) // the connection is gone
	})
}

func TestAnExchangeThatIsLostHappensOnce(t *testing.T) {
	t.Parallel()
	for _, how := range []string{before, unsaid, halfSaid} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := &cutting{}
			s := newShop(t, c.between)
			ctx := context.Background()
			lost := 0
			for n := 1; ; n++ {
				id, err := extensions.NewID(nil)
				if err != nil {
					t.Fatal(err)
				}
				c.mu.Lock()
				c.left, c.how, c.cuts = n, how, 0
				c.mu.Unlock()
				err = aLife(ctx, s, id)
				c.mu.Lock()
				cuts := c.cuts
				c.left = 0
				c.mu.Unlock()
				if err != nil {
					t.Fatalf("exchange %d: %v", n, err)
				}
				var types []string
				events, err := s.base.Events(ctx, "acme", 1, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events {
					if e.Subject == string(id) {
						types = append(types, e.Type)
					}
				}
				const want = "sandbox.requested sandbox.provisioning sandbox.ready sandbox.destroying sandbox.destroyed"
				if got := strings.Join(types, " "); got != want {
					t.Fatalf("exchange %d: %s", n, got)
				}
				if cuts == 0 {
					break
				}
				lost++
			}
			if lost < 5 {
				t.Errorf("only %d exchanges were lost", lost)
			}
			if r, err := s.Verify(ctx); err != nil || !r.OK() {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

func TestWhatMayHaveHappenedIsNotCalledUndone(t *testing.T) {
	t.Parallel()
	var deaf atomic.Bool
	s := newShop(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !deaf.Load() {
				h.ServeHTTP(w, r)
				return
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		})
	})
	deaf.Store(true)
	ctx := context.Background()
	if _, err := s.PutHost(ctx, ledger.Host{Account: "acme/web", Name: "one", Ref: "{}"}); !extensions.IsKind(err, extensions.KindIndeterminate) || extensions.RemedyOf(err) == "" {
		t.Errorf("a write whose answers are lost: %v", err)
	}
	if _, err := s.Hosts(ctx, "acme/web"); !extensions.IsKind(err, extensions.KindUnavailable) {
		t.Errorf("a read whose answers are lost: %v", err)
	}
	deaf.Store(false)
	if hosts, err := s.Hosts(ctx, "acme/web"); err != nil || len(hosts) != 1 {
		t.Errorf("%+v, %v", hosts, err)
	}
	s.at.Close()
	s.http.HTTPClient.CloseIdleConnections() // what goes down one of them may have arrived
	if _, err := s.PutHost(ctx, ledger.Host{Account: "acme/web", Name: "two", Ref: "{}"}); !extensions.IsKind(err, extensions.KindUnavailable) {
		t.Errorf("nobody is there: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.PutHost(gone, ledger.Host{Account: "acme/web", Name: "two", Ref: "{}"}); !extensions.IsKind(err, extensions.KindTimeout) {
		t.Errorf("given up before: %v", err)
	}
}

func TestWhatStandsInBetweenIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var refusals, stuck atomic.Int64
			s := newShop(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if refusals.Add(-1) >= 0 || stuck.Load() > 0 {
						w.Header().Set("Retry-After", "0")
						w.WriteHeader(status)
						return
					}
					h.ServeHTTP(w, r)
				})
			})
			ctx := context.Background()
			refusals.Store(3)
			if _, err := s.PutHost(ctx, ledger.Host{Account: "acme/web", Name: "one", Ref: "{}"}); err != nil {
				t.Errorf("refused three times: %v", err)
			}
			stuck.Store(1)
			want := extensions.KindUnavailable
			if status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
				want = extensions.KindIndeterminate // it may have been passed on
			}
			if _, err := s.PutHost(ctx, ledger.Host{Account: "acme/web", Name: "two", Ref: "{}"}); !extensions.IsKind(err, want) {
				t.Errorf("refused for ever: %v", err)
			}
		})
	}
}
