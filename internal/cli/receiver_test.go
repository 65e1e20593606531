package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// receiver takes CloudEvents for scripts, if they come with its token.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	answer int
	seen   map[string]string // by id
	order  []string          // sequences of the chain
}

func receiverOf(ts *testscript.TestScript, name string) *receiver {
	r, ok := ts.Value(receiverKey(name)).(*receiver)
	if !ok {
		ts.Fatalf("there is no receiver %s", name)
	}
	return r
}

type receiverKey string

// addReceivers makes room for those a script starts.
func addReceivers(env *testscript.Env) {
	for _, name := range []string{"HUB"} {
		env.Values[receiverKey(name)] = &receiver{answer: http.StatusNoContent, seen: map[string]string{}}
	}
}

// startReceiver NAME starts a receiver and sets NAME to its address.
func startReceiver(ts *testscript.TestScript, _ bool, args []string) {
	r := receiverOf(ts, args[0])
	r.Server = httptest.NewServer(r)
	ts.Defer(r.Close)
	ts.Setenv(args[0], r.URL)
}

// answer NAME STATUS makes it answer so from now on.
func answer(ts *testscript.TestScript, _ bool, args []string) {
	r := receiverOf(ts, args[0])
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	r.answer, err = strconv.Atoi(args[1])
	ts.Check(err)
}

// got NAME wants the whole chain there, in order, each event once.
func got(ts *testscript.TestScript, _ bool, args []string) {
	r := receiverOf(ts, args[0])
	r.mu.Lock()
	defer r.mu.Unlock()
	ts.Check(ts.Exec("sandboxer", "ledger", "export", "--format", "cloudevents"))
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	if len(lines) != len(r.order) {
		ts.Fatalf("%d events arrived of %d", len(r.order), len(lines))
	}
	for i, line := range lines {
		var e struct{ ID, Sequence string }
		ts.Check(json.Unmarshal([]byte(line), &e))
		if r.seen[e.ID] != line || r.order[i] != e.Sequence {
			ts.Fatalf("event %s did not arrive, or not in its turn", e.Sequence)
		}
	}
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answer != http.StatusNoContent || req.URL.Path != "/api/v1/events" || req.Header.Get("Authorization") != "Bearer t0ken-of-hub" {
		http.Error(w, "no: "+req.Header.Get("Authorization"), max(r.answer, http.StatusBadRequest))
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	raws := []json.RawMessage{body}
	if req.Header.Get("Content-Type") == "application/cloudevents-batch+json" {
		if err := json.Unmarshal(body, &raws); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	for _, raw := range raws {
		var e struct{ ID, Sequence, Type string }
		if err := json.Unmarshal(raw, &e); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if _, again := r.seen[e.ID]; !again && e.Type != "sandboxer.usage" {
			r.order = append(r.order, e.Sequence)
		}
		r.seen[e.ID] = string(raw)
	}
	w.WriteHeader(http.StatusNoContent)
}
