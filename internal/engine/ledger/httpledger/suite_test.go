package httpledger

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/ledgertest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
)

const testToken = "sbxl_0123456789012345678901234567890123456789012"

// TestMain also plays the parts of child processes, which have the token from
// here too.
func TestMain(m *testing.M) {
	if err := os.Setenv(EnvToken, testToken); err != nil {
		panic(err)
	}
	ledger.Register("served", ledger.Scheme{Open: openServed, Check: func(string) error { return nil },
		Shown: func(address string) string { return address }, Shared: true})
	ledgertest.Main(m, pgtest.Stop)
}

// served is a client with a server of its own over the ledger at an address,
// opened with the same options. What the tests inject into a context reaches
// that server's transactions.
type served struct {
	*Client
	base   ledger.Ledger
	server *httptest.Server
	folder string
}

// unbounded is a server that refuses nobody who has the token, which shows the
// whole ledger.
func unbounded(l ledger.Ledger) (*Server, error) {
	return NewServer(Config{Ledger: l, View: func(Principal) ledger.Ledger { return l }, PerSecond: 1e6, Burst: 1e6, Plain: true,
		Authenticate: func(token string) (Principal, bool) { return Principal{Token: "test"}, token == testToken }})
}

// openTo opens a client of a TLS server that was just started.
func openTo(ctx context.Context, server *httptest.Server, folder string, o ledger.Options) (*Client, error) {
	ca := filepath.Join(folder, "ca.pem")
	err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600)
	if err != nil {
		return nil, err
	}
	return Open(ctx, server.URL+"?ca="+ca, o)
}

func openServed(ctx context.Context, address string, o ledger.Options) (_ ledger.Ledger, err error) {
	s := &served{}
	if s.base, err = ledger.Open(ctx, strings.TrimPrefix(address, "served:"), o); err != nil {
		return nil, err
	}
	if s.folder, err = os.MkdirTemp("", "served"); err != nil {
		return nil, err
	}
	h, err := unbounded(s.base)
	if err != nil {
		return nil, err
	}
	var calls sync.Map
	s.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := calls.Load(r.Header.Get("X-Call")); ok {
			r = r.WithContext(values{r.Context(), c.(context.Context)})
		}
		h.ServeHTTP(w, r)
	}))
	o.Now = nil // the tests' is the server's
	if s.Client, err = openTo(ctx, s.server, s.folder, o); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.http.HTTPClient.Transport = &marking{s.http.HTTPClient.Transport, &calls, atomic.Int64{}}
	return s, nil
}

func (s *served) close() error {
	s.server.Close()
	return errors.Join(s.base.Close(), os.RemoveAll(s.folder))
}

func (s *served) Close() error { return errors.Join(s.Client.Close(), s.close()) }

// injected tells a failure that a test asked for by what it is.
func (s *served) injected(err error) error {
	if err != nil && strings.Contains(err.Error(), failpointtest.ErrInjected.Error()) {
		return fmt.Errorf("%w: %w", err, failpointtest.ErrInjected)
	}
	return err
}

func (s *served) Begin(ctx context.Context, b ledger.Begin) (ledger.Sandbox, error) {
	v, err := s.Client.Begin(ctx, b)
	return v, s.injected(err)
}

func (s *served) Apply(ctx context.Context, c ledger.Change) (ledger.Sandbox, error) {
	v, err := s.Client.Apply(ctx, c)
	return v, s.injected(err)
}

func (s *served) Replay(ctx context.Context, b *ledger.Begin, cs ...ledger.Change) (ledger.Sandbox, error) {
	v, err := s.Client.Replay(ctx, b, cs...)
	return v, s.injected(err)
}

func (s *served) Grant(ctx context.Context, g ledger.Grant) (ledger.Balance, error) {
	v, err := s.Client.Grant(ctx, g)
	return v, s.injected(err)
}

func (s *served) PutHost(ctx context.Context, h ledger.Host) (ledger.Host, error) {
	v, err := s.Client.PutHost(ctx, h)
	return v, s.injected(err)
}

func (s *served) PutBudget(ctx context.Context, b ledger.Budget) (ledger.Budget, error) {
	v, err := s.Client.PutBudget(ctx, b)
	return v, s.injected(err)
}

func (s *served) MoveOutbox(ctx context.Context, step ledger.OutboxStep) (ledger.Outbox, error) {
	v, err := s.Client.MoveOutbox(ctx, step)
	return v, s.injected(err)
}

func (s *served) DeleteHost(ctx context.Context, account, name string) error {
	return s.injected(s.Client.DeleteHost(ctx, account, name))
}

func (s *served) BeginSnapshot(ctx context.Context, b ledger.BeginSnapshot) (ledger.Snapshot, error) {
	v, err := s.Client.BeginSnapshot(ctx, b)
	return v, s.injected(err)
}

func (s *served) ApplySnapshot(ctx context.Context, c ledger.SnapshotChange) (ledger.Snapshot, error) {
	v, err := s.Client.ApplySnapshot(ctx, c)
	return v, s.injected(err)
}

// marking lets the server find the context of a call.
type marking struct {
	http.RoundTripper
	calls *sync.Map
	n     atomic.Int64
}

func (m *marking) RoundTrip(r *http.Request) (*http.Response, error) {
	key := strconv.FormatInt(m.n.Add(1), 10)
	m.calls.Store(key, r.Context())
	defer m.calls.Delete(key)
	r = r.Clone(r.Context())
	r.Header.Set("X-Call", key)
	return m.RoundTripper.RoundTrip(r)
}

func (m *marking) CloseIdleConnections() {
	m.RoundTripper.(*http.Transport).CloseIdleConnections()
}

// values is one context with the values of another too.
type values struct {
	context.Context
	more context.Context
}

func (v values) Value(key any) any {
	if x := v.Context.Value(key); x != nil {
		return x
	}
	return v.more.Value(key)
}

func TestSQLiteBehindServers(t *testing.T) {
	t.Parallel()
	ledgertest.Exercise(t, func(t testing.TB) string {
		return "served:" + ledger.DefaultURL(filepath.Join(t.TempDir(), "state"))
	})
}

// Here the clients are processes of their own, and have one server.
func TestProcessesOfOneServer(t *testing.T) {
	t.Parallel()
	ledgertest.Race(t, func(t testing.TB) string {
		base, err := ledger.Open(context.Background(), ledger.DefaultURL(filepath.Join(t.TempDir(), "state")), ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := unbounded(base)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewTLSServer(h)
		t.Cleanup(func() {
			server.Close()
			_ = base.Close()
		})
		ca := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		return server.URL + "?ca=" + ca
	})
}

// The client knows nothing of the database behind its server, and the database
// passes the whole suite by itself: what is left to see is that errors and money
// come through.
func TestPostgresBehindServers(t *testing.T) {
	t.Parallel()
	ledgertest.Exercise(t, func(t testing.TB) string { return "served:" + pgtest.New(t) }, "Life", "CompareAndSet", "Intents", "Funds", "Outbox")
}
