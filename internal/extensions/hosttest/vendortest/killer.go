package vendortest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// Killer stands before a vendor's servers and kills a process at its nth request: before the vendor has that, or when the
// vendor has done it and nobody was told. Its zero value kills nobody until Start.
type Killer struct {
	mu     sync.Mutex
	at     int64
	after  bool
	seen   int64
	victim *exec.Cmd // nil = it cuts whoever calls off
	dead   bool
}

// Front is an address of the killer's that leads to one of the vendor's.
func (k *Killer) Front(t testing.TB, to string) string {
	t.Helper()
	proxy := passing(t, to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before, after := k.Strikes()
		if after {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
		}
		if before || after {
			k.Kill()
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// passing passes on what it gets, in both directions and as it comes.
func passing(t testing.TB, address string) *httputil.ReverseProxy {
	t.Helper()
	to, err := url.Parse(address)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	return proxy
}

// Strikes counts one request and says whether to Kill before or after it. A nil Killer never strikes.
func (k *Killer) Strikes() (before, after bool) {
	if k == nil {
		return false, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen++
	if k.dead {
		return true, false
	}
	hit := k.seen == k.at
	return hit && !k.after, hit && k.after
}

// Kill kills the victim.
func (k *Killer) Kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.victim == nil {
		k.dead = true
		return
	}
	_ = k.victim.Process.Kill()
}

// Cut lets nothing more through from the nth request on, as if its caller were dead. after lets the vendor do that one.
func (k *Killer) Cut(n int64, after bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, k.after = n, after
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

// victimEnv has the task of a process that Run started.
const victimEnv = "SANDBOXER_TEST_VICTIM"

// Run gives a task to a process of the test's own program, whose TestMain calls Victim, and kills it at its nth request;
// false = it ended before.
func (k *Killer) Run(t testing.TB, task any, n int64, after bool) (killed bool) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	text, err := json.Marshal(task)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), victimEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	must(t, k.Start(cmd, n, after))
	return k.Wait() != nil
}

// Victim does the task of a process that Run started, and reports whether this is one.
func Victim[Task any](work func(Task)) bool {
	text := os.Getenv(victimEnv)
	if text == "" {
		return false
	}
	var task Task
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		panic(err)
	}
	work(task)
	return true
}
