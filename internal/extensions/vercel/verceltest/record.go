package verceltest

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

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

// record keeps a request, and what is read of its body from now on.
func (v *Vendor) record(r *http.Request, on string) {
	kept := &recorded{Request: Request{On: on, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header.Clone()}}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, kept), r.Body}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests = append(v.requests, kept)
}

// Requests are all that the vendor got so far, those that it refused, too.
func (v *Vendor) Requests() []Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []Request
	for _, r := range v.requests {
		r.mu.Lock()
		one := r.Request
		one.Body = bytes.Clone(r.body.Bytes())
		r.mu.Unlock()
		out = append(out, one)
	}
	return out
}
