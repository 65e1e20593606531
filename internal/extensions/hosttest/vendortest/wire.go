package vendortest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Wire is the way to one fake of a vendor: what came over it, and what goes wrong on it. Its methods may be called at any
// time from any goroutine.
type Wire struct {
	t      testing.TB
	vendor string // in messages

	mu       sync.Mutex
	faults   []*Fault
	requests []*recorded
}

// NewWire returns one without faults. It fails the test for what the vendor's description does not allow.
func NewWire(t testing.TB, vendor string) *Wire { return &Wire{t: t, vendor: vendor} }

// When a fault strikes.
const (
	Before When = iota // nothing has happened yet
	After              // it has all happened, and its answer is lost
)

// When says whether a call has had its effect.
type When int

// Fault is a failure of the way to the vendor: a gateway's answer, or none.
type Fault struct {
	// On is the operation as in the vendor's description ("POST /sandboxes/{id}/stop"), "" = each one.
	On   string
	When When
	// Times bounds how often it strikes; 0 = once, below 0 = until the test ends.
	Times int
	// Delay passes first, in real time.
	Delay time.Duration
	// Status is what a gateway answers, with Header and Body; 0 breaks the connection instead, unless Pass is set.
	Status int
	Header http.Header
	Body   string
	// Pass lets the call through after Delay.
	Pass bool
}

// Inject lets a fault strike calls from now on. Several for one operation strike one after another.
func (w *Wire) Inject(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	w.faults = append(w.faults, &f)
}

// Fault takes the next one for an operation; nil = none.
func (w *Wire) Fault(on string) *Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		if f.Times != 0 && (f.On == "" || f.On == on) {
			f.Times--
			return f
		}
	}
	return nil
}

// Strikes reports whether the fault has answered in place of the vendor. A nil one never does.
func (f *Fault) Strikes(w http.ResponseWriter, r *http.Request, when When) bool {
	if f == nil || f.When != when {
		return false
	}
	select {
	case <-time.After(f.Delay):
	case <-r.Context().Done():
	}
	switch {
	case f.Pass:
		return false
	case f.Status == 0:
		panic(http.ErrAbortHandler) // net/http closes the connection without a word
	}
	for name, values := range f.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body))
	return true
}

// Request is one that the vendor got, of whoever sent it.
type Request struct {
	On          string // the operation, as in Fault.On
	Path, Query string // as sent
	Header      http.Header
	Body        []byte
}

// recorded is a request whose body is still coming.
type recorded struct {
	Request
	mu   sync.Mutex
	body bytes.Buffer
}

func (r *recorded) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body.Write(b)
}

// Record keeps a request, and what is read of its body from now on.
func (w *Wire) Record(r *http.Request, on string) {
	kept := &recorded{Request: Request{On: on, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header.Clone()}}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, kept), r.Body}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, kept)
}

// Requests are all that the vendor got so far, those that it refused, too.
func (w *Wire) Requests() []Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Request
	for _, r := range w.requests {
		r.mu.Lock()
		one := r.Request
		one.Body = bytes.Clone(r.body.Bytes())
		r.mu.Unlock()
		out = append(out, one)
	}
	return out
}

// Mux is a server of operations that are still to be registered. A request for none of them fails the test.
func (w *Wire) Mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(to http.ResponseWriter, r *http.Request) {
		w.t.Errorf("the fake of %s has no %s %s", w.vendor, r.Method, r.URL.Path)
		http.NotFound(to, r)
	})
	return mux
}

// Serve serves one request of an operation: it is recorded, meets its fault, and the description judges it and what do
// answers. do gets the body twice: as it is read, and whole.
func (w *Wire) Serve(to http.ResponseWriter, r *http.Request, by *Description, on string,
	do func(http.ResponseWriter, *http.Request, []byte)) {
	w.Record(r, on)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	fault := w.Fault(on)
	if fault.Strikes(to, r, Before) {
		return
	}
	out := httptest.NewRecorder()
	if w.Judged(out, r, by, on, body, do) && fault.Strikes(to, r, After) {
		return
	}
	Copy(to, out)
}

// Copy gives the answer that out recorded.
func Copy(to http.ResponseWriter, out *httptest.ResponseRecorder) {
	for name, values := range out.Header() {
		to.Header()[name] = values
	}
	to.WriteHeader(out.Code)
	_, _ = io.Copy(to, out.Body)
}

// Judged does an operation into a recorder, unless the description does not allow it, and judges the answer. It reports
// whether do was called.
func (w *Wire) Judged(out *httptest.ResponseRecorder, r *http.Request, by *Description, on string, body []byte,
	do func(http.ResponseWriter, *http.Request, []byte)) bool {
	in, err := by.call(r, on, body)
	if err != nil {
		w.t.Errorf("a request that %s's description does not allow: %s %s %.400q: %v", w.vendor, r.Method, r.URL, body, err)
		http.Error(out, err.Error(), http.StatusTeapot)
		return false
	}
	do(out, withBody(r, body), body)
	if err := by.answer(r.Context(), in, out.Code, out.Header(), out.Body.Bytes()); err != nil {
		w.t.Errorf("an answer that %s's description does not allow: %s: %d %.400s: %v", w.vendor, on, out.Code, out.Body, err)
	}
	return true
}

func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}
