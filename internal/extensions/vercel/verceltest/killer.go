package verceltest

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"sync"
	"testing"
)

// Killer stands before a vendor and kills a process at its nth request: before the vendor has that, or
// when the vendor has done it and nobody was told.
type Killer struct {
	APIURL string

	mu     sync.Mutex
	at     int64
	after  bool
	seen   int64
	victim *exec.Cmd
}

// Killer returns one that kills nobody until Start.
func (v *Vendor) Killer(t testing.TB) *Killer {
	t.Helper()
	k := &Killer{}
	front := func(to string) string {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(u)
		proxy.FlushInterval = -1
		proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			before, after := k.strikes()
			switch {
			case before:
				k.kill()
			case after:
				proxy.ServeHTTP(httptest.NewRecorder(), r)
				k.kill()
			default:
				proxy.ServeHTTP(w, r)
			}
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	k.APIURL = front(v.APIURL)
	return k
}

func (k *Killer) strikes() (before, after bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen++
	hit := k.seen == k.at
	return hit && !k.after, hit && k.after
}

func (k *Killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.victim.Process.Kill()
}

// Start starts a process and kills it at its nth request; 0 = never. after lets the vendor do that one first.
func (k *Killer) Start(cmd *exec.Cmd, n int64, after bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, k.after, k.seen, k.victim = n, after, 0, cmd
	return cmd.Start()
}

// Wait waits for the process, and kills nobody from then on. Its error is that of the process.
func (k *Killer) Wait() error {
	err := k.victim.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at = 0
	return err
}

// Seen counts the requests since Start.
func (k *Killer) Seen() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen
}
