package httpledger

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// post asks a handler as a client would, with what is given changed.
func post(h http.Handler, op, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, prefix+op, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testToken)
	r.Header.Set("Content-Type", contentType)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestRequestsThatAreNotOurs(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	h, err := unbounded(s.base)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	h.Log = slog.New(slog.NewJSONHandler(&log, nil))
	for name, c := range map[string]struct {
		op, body string
		change   func(*http.Request)
		status   int
		kind     extensions.Kind
	}{
		"ours":             {op: opHello, body: `{}`, status: 200},
		"no token":         {op: opHello, body: `{}`, change: func(r *http.Request) { r.Header.Del("Authorization") }, status: 401, kind: extensions.KindUnauthorized},
		"another token":    {op: opHello, body: `{}`, change: func(r *http.Request) { r.Header.Set("Authorization", "Bearer sbxl_no") }, status: 401, kind: extensions.KindUnauthorized},
		"another scheme":   {op: opHello, body: `{}`, change: func(r *http.Request) { r.Header.Set("Authorization", "Basic "+testToken) }, status: 401, kind: extensions.KindUnauthorized},
		"no operation":     {op: "drop-tables", body: `{}`, status: 422, kind: extensions.KindUnsupported},
		"no prefix":        {op: "../../x", body: `{}`, status: 422, kind: extensions.KindUnsupported},
		"a GET":            {op: opHello, body: `{}`, change: func(r *http.Request) { r.Method = http.MethodGet }, status: 422, kind: extensions.KindInvalid},
		"a form":           {op: opHello, body: `{}`, change: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, status: 422, kind: extensions.KindInvalid},
		"an unknown field": {op: opBegin, body: `{"Key":"k","Amount":1}`, status: 422, kind: extensions.KindInvalid},
		"two values":       {op: opHello, body: `{}{}`, status: 422, kind: extensions.KindInvalid},
		"no JSON":          {op: opHello, body: `{`, status: 422, kind: extensions.KindInvalid},
		"nothing":          {op: opHello, status: 422, kind: extensions.KindInvalid},
		"too much":         {op: opGet, body: `"` + strings.Repeat("x", maxRequest) + `"`, status: 422, kind: extensions.KindInvalid},
		"nobody's holder":  {op: opHolder, body: `{"ID":"someone","Term":1000}`, status: 404, kind: extensions.KindNotFound},
		"nothing there":    {op: opGet, body: `"sbx-none"`, status: 404, kind: extensions.KindNotFound},
	} {
		w := post(h, c.op, c.body, c.change)
		var f failure
		if w.Code != 200 {
			if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil {
				t.Errorf("%s: %v: %s", name, err, w.Body)
			}
		}
		if w.Code != c.status || f.Kind != c.kind || w.Header().Get(headerRequest) == "" || w.Header().Get("Content-Type") != contentType {
			t.Errorf("%s: %d %s %v", name, w.Code, w.Body, w.Header())
		}
	}
	w := post(h, opHello, `{}`, func(r *http.Request) { r.Header.Set(headerRequest, "mine-1") })
	if w.Header().Get(headerRequest) != "mine-1" || !strings.Contains(log.String(), `"id":"mine-1"`) || strings.Contains(log.String(), "sbxl_") {
		t.Errorf("the request's id: %v; %s", w.Header(), log.String())
	}
	w = post(h, opHello, `{}`, func(r *http.Request) { r.Header.Set(headerRequest, "forged\nline") })
	if strings.Contains(w.Header().Get(headerRequest), "forged") {
		t.Errorf("%v", w.Header())
	}
}

func TestATokenThatAsksTooOftenWaits(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	var who atomic.Value
	who.Store("a")
	h, err := NewServer(Config{Ledger: s.base, View: func(Principal) ledger.Ledger { return s.base }, PerSecond: 0.001, Burst: 2,
		Authenticate: func(string) (Principal, bool) { return Principal{Token: who.Load().(string)}, true }})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{200, 200, 429} {
		w := post(h, opHello, `{}`, nil)
		if w.Code != want || (want == 429) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("request %d: %d %v", i, w.Code, w.Header())
		}
	}
	who.Store("b")
	if w := post(h, opHello, `{}`, nil); w.Code != 200 {
		t.Errorf("another token waits too: %d", w.Code)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	h, err := unbounded(s.base)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	if w.Code != 200 || w.Body.String() != "ok\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_ = s.base.Close()
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("of a ledger that is closed: %d", w.Code)
	}
}

func TestAServedLedgerIsNotServedOn(t *testing.T) {
	t.Parallel()
	if _, err := NewServer(Config{Ledger: newShop(t, nil).Client}); !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
}

func TestHoldersOfOneAccountAreNotThoseOfAnother(t *testing.T) {
	t.Parallel()
	a, b := Principal{Account: "acme/web"}, Principal{Account: "acme/other"}
	id := a.newHolder(time.Now())
	if !a.Owns(id) || b.Owns(id) || a.Owns("plain") || a.newHolder(time.Now()) == id {
		t.Errorf("%s", id)
	}
}

func TestListening(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]Listening{
		"a network in the clear": {Address: "0.0.0.0:0"},
		"every address":          {Address: ":0"},
		"a key alone":            {Address: "127.0.0.1:0", Key: "key.pem"},
		"files that are not":     {Address: "127.0.0.1:0", Key: "/no/key.pem", Certificate: "/no/cert.pem"},
		"no port":                {Address: "127.0.0.1"},
	} {
		l.Log = slog.New(slog.DiscardHandler)
		if err := Serve(context.Background(), http.NotFoundHandler(), l); !extensions.IsKind(err, extensions.KindInvalid) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who has no token holds no connection, and there are only so many at once.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	shop := newShop(t, nil)
	h, err := unbounded(shop.base)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, h, Listening{Address: "127.0.0.1:0", Connections: 2, Ready: func(url string) { ready <- url }, Log: slog.New(slog.DiscardHandler)})
	}()
	url := <-ready
	ask := func(token string) (status int, closed bool) {
		r, err := http.NewRequest(http.MethodPost, url+prefix+opHello, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", contentType)
		own := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
		t.Cleanup(own.CloseIdleConnections)
		resp, err := own.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.StatusCode, resp.Close
	}
	for range 5 { // more than there may be, were they kept
		if status, closed := ask("sbxl_no"); status != http.StatusUnauthorized || !closed {
			t.Fatalf("%d, closed: %t", status, closed)
		}
	}
	ask(testToken)
	ask(testToken) // both are kept now
	waiting, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	_, _ = io.WriteString(waiting, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	_ = waiting.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := waiting.Read(make([]byte, 1)); n > 0 || !os.IsTimeout(err) {
		t.Errorf("a third is answered: %d, %v", n, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What is under way when the server is told to end is answered.
func TestAServerFinishesWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(context.Background())
	begun := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond)
		_, _ = io.WriteString(w, "done")
	})
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, h, Listening{Address: "127.0.0.1:0", Ready: func(url string) { ready <- url }, Log: slog.New(slog.DiscardHandler)})
	}()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer := make(chan string, 1)
	url := <-ready
	go func() {
		resp, err := client.Get(url)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		answer <- string(b)
	}()
	<-begun
	stop()
	if got := <-answer; got != "done" {
		t.Errorf("answered %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestACertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	c := &certificate{cert: filepath.Join(dir, "c.pem"), key: filepath.Join(dir, "k.pem")}
	if _, err := c.get(nil); err == nil {
		t.Error("nothing is there")
	}
	first := writeCertificate(t, c, 1)
	got, err := c.get(nil)
	if err != nil || !bytes.Equal(got.Certificate[0], first) {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.key, []byte("half written"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = c.get(nil); err != nil || !bytes.Equal(got.Certificate[0], first) {
		t.Errorf("while it is renewed: %v", err)
	}
	renewed := writeCertificate(t, c, 2)
	if got, err = c.get(nil); err != nil || !bytes.Equal(got.Certificate[0], renewed) {
		t.Errorf("renewed: %v", err)
	}
}
