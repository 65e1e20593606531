package daytonatest

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"sync"
	"testing"
)

// Killer stands before a vendor's API and its toolboxes and kills a process at its nth request, when the vendor has done it and
// nobody was told.
type Killer struct {
	APIURL string

	mu     sync.Mutex
	at     int64
	seen   int64
	victim *exec.Cmd
}

// Killer returns one that kills nobody until Start. It must be there before the first sandbox is.
func (v *Vendor) Killer(t testing.TB) *Killer {
	t.Helper()
	k := &Killer{}
	front := func(to string) string {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(u)
		proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !k.strikes() {
				proxy.ServeHTTP(w, r)
				return
			}
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			k.kill()
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	k.APIURL = front(v.APIURL)
	v.ToolboxURL = front(v.ToolboxURL)
	return k
}

func (k *Killer) strikes() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen++
	return k.seen == k.at
}

func (k *Killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.victim.Process.Kill()
}

// Start starts a process and kills it when its nth request is done; 0 = never.
func (k *Killer) Start(cmd *exec.Cmd, n int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, k.seen, k.victim = n, 0, cmd
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
