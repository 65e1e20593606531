package export

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"
)

// receiver takes events as OpenMeter does: CloudEvents in structured or batch
// mode, all of a request or none, the same source and id counted once.
type receiver struct {
	*httptest.Server
	t     testing.TB
	token string
	// fault may answer in the receiver's place; taken tells whether the events
	// are to be kept all the same. nil = no fault.
	fault func(w http.ResponseWriter, n int, events []event) (answered, taken bool)
	// refuse makes a request with such an event a bad one.
	refuse func(event) bool

	mu       sync.Mutex
	requests int
	order    []event           // as first taken
	seen     map[string]string // source and id to content
	twice    int
	largest  int
}

type event struct {
	raw                          string
	ID, Source, Type, Subject    string
	SpecVersion, DataContentType string
	Time                         time.Time
	Stream, Sequence, ChainHash  string
	Data                         map[string]any
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{t: t, seen: map[string]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// set changes the fault. A request that was cut off may still be under way.
func (r *receiver) set(fault func(w http.ResponseWriter, n int, events []event) (answered, taken bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

func (r *receiver) url() string { return r.URL + "/api/v1/events" }

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if req.Method != http.MethodPost || req.URL.Path != "/api/v1/events" {
		http.NotFound(w, req)
		return
	}
	if r.token != "" && req.Header.Get("Authorization") != "Bearer "+r.token {
		http.Error(w, "who are you, "+req.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	events, problem := read(req)
	if problem != "" {
		r.t.Errorf("a request no receiver understands: %s", problem)
		http.Error(w, problem, http.StatusBadRequest)
		return
	}
	if r.fault != nil {
		if answered, taken := r.fault(w, r.requests, events); answered {
			if taken {
				r.take(events)
			}
			return
		}
	}
	for _, e := range events {
		if r.refuse != nil && r.refuse(e) {
			http.Error(w, `{"title":"Bad Request","detail":"event `+e.ID+` is not for us"}`, http.StatusBadRequest)
			return
		}
	}
	r.take(events)
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) take(events []event) {
	r.largest = max(r.largest, len(events))
	for _, e := range events {
		key := e.Source + " " + e.ID
		if had, ok := r.seen[key]; ok {
			r.twice++
			if had != e.raw {
				r.t.Errorf("two events of one id:\n%s\n%s", had, e.raw)
			}
			continue
		}
		r.seen[key] = e.raw
		r.order = append(r.order, e)
	}
}

var attribute = regexp.MustCompile(`^[a-z0-9]+$`)

// read understands a request, or says what is wrong with it.
func read(req *http.Request) (events []event, problem string) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err.Error()
	}
	var raws []json.RawMessage
	switch req.Header.Get("Content-Type") {
	case "application/cloudevents+json":
		raws = []json.RawMessage{body}
	case "application/cloudevents-batch+json":
		if err := json.Unmarshal(body, &raws); err != nil || len(raws) == 0 {
			return nil, "not a batch"
		}
	default:
		return nil, "media type " + req.Header.Get("Content-Type")
	}
	for _, raw := range raws {
		var e event
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, err.Error()
		}
		var attributes map[string]json.RawMessage
		if err := json.Unmarshal(raw, &attributes); err != nil {
			return nil, err.Error()
		}
		for name := range maps.Keys(attributes) {
			if !attribute.MatchString(name) || name != "data" && bytes.Equal(attributes[name], []byte(`""`)) {
				return nil, "attribute " + name
			}
		}
		if _, _, err := mime.ParseMediaType(e.DataContentType); err != nil || e.SpecVersion != "1.0" || e.ID == "" || e.Source == "" ||
			e.Type == "" || e.Subject == "" || e.Time.IsZero() {
			return nil, "not a CloudEvent: " + string(raw)
		}
		e.raw = string(raw)
		events = append(events, e)
	}
	return events, ""
}

// chain are the events of the ledger, without those made of them.
func (r *receiver) chain() (out []event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.order {
		if e.Type != UsageType {
			out = append(out, e)
		}
	}
	return out
}

func (r *receiver) usage() (out []event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.order {
		if e.Type == UsageType {
			out = append(out, e)
		}
	}
	return out
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}
