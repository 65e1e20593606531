package verceltest

import (
	"net/http"
	"time"
)

// When a fault strikes.
const (
	Before When = iota // nothing has happened yet
	After              // it has all happened, and its answer is lost
)

// When says whether a call has had its effect.
type When int

// Fault is a failure of the way to the vendor: a gateway's answer, or none.
type Fault struct {
	// On is the operation as in the vendor's description ("POST /v3/sandboxes"), "" = each one.
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
func (v *Vendor) Inject(f Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	v.faults = append(v.faults, &f)
}

// fault takes the next one for an operation; nil = none.
func (v *Vendor) fault(pattern string) *Fault {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range v.faults {
		if f.Times != 0 && (f.On == "" || f.On == pattern) {
			f.Times--
			return f
		}
	}
	return nil
}

// strikes reports whether the fault has answered in place of the vendor.
func (f *Fault) strikes(w http.ResponseWriter, r *http.Request, when When) bool {
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
