package e2btest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// listener hears what the fake says of its clients.
type listener struct {
	testing.TB
	mu    sync.Mutex
	heard []string
}

func (l *listener) Errorf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, fmt.Sprintf(format, args...))
}

func (l *listener) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.heard, "\n")
}

func heard(t *testing.T) (client, *listener) {
	t.Helper()
	l := &listener{TB: t}
	v := Start(l)
	h := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(h.CloseIdleConnections)
	return client{t: t, v: v, h: h}, l
}

func TestWhatTheDescriptionDoesNotAllowFailsTheTest(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]struct {
		method, path string
		body         any
	}{
		"a required field is missing": {"POST", "/sandboxes", map[string]any{"timeout": 5}},
		"a field has another type":    {"POST", "/sandboxes", map[string]any{"templateID": "base", "timeout": "5"}},
		"a field is unknown":          {"POST", "/sandboxes", map[string]any{"templateID": "base", "tiemout": 5}},
		"a deeper field is unknown":   {"POST", "/sandboxes", map[string]any{"templateID": "base", "network": map[string]any{"allow": []string{}}}},
		"a body is missing":           {"POST", "/sandboxes/x/connect", nil},
		"there is a body":             {"GET", "/v2/sandboxes", map[string]any{}},
		"a query is unknown":          {"GET", "/v2/sandboxes?meta=k", nil},
		"a query is out of range":     {"GET", "/v2/sandboxes?limit=101", nil},
		"a value is out of its enum":  {"GET", "/v2/sandboxes?state=gone", nil},
		"a path is unknown":           {"POST", "/v2/sandboxes", map[string]any{"templateID": "base"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, l := heard(t)
			c.raw(call.method, call.path, call.body)
			if l.all() == "" {
				t.Error("nobody heard of it")
			}
		})
	}
}

func TestAnAnswerThatTheDescriptionDoesNotAllowFailsTheTest(t *testing.T) {
	t.Parallel()
	c, l := heard(t)
	id, _ := c.made(nil)
	if got := l.all(); got != "" {
		t.Fatal(got)
	}
	c.v.mu.Lock()
	c.v.sandboxes[id].state = "sleeping"
	c.v.mu.Unlock()
	c.raw("GET", "/sandboxes/"+id, nil)
	if got := l.all(); !strings.Contains(got, "an answer that E2B's description does not allow") {
		t.Error(got)
	}
}

func TestAWrongKeyOpensNothing(t *testing.T) {
	t.Parallel()
	c := connected(t)
	c.v.Key = "e2b_0"
	for _, key := range []string{"", "e2b_1"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.v.APIURL+"/v2/sandboxes", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-Key", key)
		res, err := c.h.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %d", key, res.StatusCode)
		}
	}
}

func TestFaultsStrikeBeforeAndAfterTheEffect(t *testing.T) {
	t.Parallel()
	c := connected(t)
	body := map[string]any{"templateID": "base", "timeout": 60}
	for _, step := range []struct {
		fault       Fault
		status, had int
	}{
		{Fault{On: "POST /sandboxes", Status: 502, Body: "<html>"}, 502, 0},
		{Fault{On: "POST /sandboxes", When: After, Status: 500}, 500, 1},
		{Fault{On: "POST /sandboxes", When: After}, 0, 2},
		{Fault{On: "POST /sandboxes"}, 0, 2},
		{Fault{On: "GET /sandboxes/{sandboxID}", Times: -1}, 201, 3},
		{Fault{On: "POST /sandboxes", Delay: 50 * time.Millisecond, Pass: true}, 201, 4},
		{Fault{Status: 429, Header: http.Header{"Retry-After": {"3"}}}, 429, 4},
	} {
		c.v.Inject(step.fault)
		status, header, text := c.raw("POST", "/sandboxes", body)
		if status != step.status || c.v.Creates() != step.had || step.status == 429 && header.Get("Retry-After") != "3" {
			t.Errorf("%+v: %d %v %s, %d exist", step.fault, status, header, text, c.v.Creates())
		}
	}
	if status, _, text := c.raw("POST", "/sandboxes", body); status != http.StatusCreated {
		t.Errorf("after all of them: %d %s", status, text)
	}
}
