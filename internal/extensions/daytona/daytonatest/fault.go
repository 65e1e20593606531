package daytonatest

import (
	"net/http"
)

// Fault is a failure of the way to the vendor: a gateway's answer, or none.
type Fault struct {
	// On is the operation as in the vendor's description: "POST /sandbox", "POST /process/execute".
	On string
	// After lets it all happen, and loses the answer.
	After bool
	// Times bounds how often it strikes; 0 = once, below 0 = until the test ends.
	Times int
	// Status is what a gateway answers, with Header and Body; 0 breaks the connection instead.
	Status int
	Header http.Header
	Body   string
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
func (v *Vendor) fault(on string) *Fault {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range v.faults {
		if f.Times != 0 && f.On == on {
			f.Times--
			return f
		}
	}
	return nil
}

// strikes reports whether the fault has answered in place of the vendor.
func (f *Fault) strikes(w http.ResponseWriter, after bool) bool {
	if f == nil || f.After != after {
		return false
	}
	if f.Status == 0 {
		panic(http.ErrAbortHandler) // net/http closes the connection without a word
	}
	for name, values := range f.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body))
	return true
}
