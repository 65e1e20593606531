package httpledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// failing is a ledger whose reads fail.
type failing struct {
	ledger.Ledger
	err error
}

func (f failing) Get(context.Context, extensions.ID) (ledger.Sandbox, error) {
	return ledger.Sandbox{}, f.err
}

// Where the ledger is kept is told to its owner, in the log.
func TestClientsAreNotToldWhereTheLedgerIs(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	secret := errors.New("open /srv/books/ledger.db on db.inner.test: no space left")
	for kind, c := range map[extensions.Kind]struct {
		status int
		hidden bool
	}{
		extensions.KindInternal:      {500, true},
		extensions.KindUnavailable:   {429, true},
		extensions.KindTimeout:       {503, true},
		extensions.KindIndeterminate: {500, true},
		extensions.KindNotFound:      {404, false},
		extensions.KindConflict:      {409, false},
	} {
		var log bytes.Buffer
		cause := &extensions.Error{Kind: kind, Op: "ledger", Err: secret, Remedy: "free some space on db.inner.test"}
		if kind == extensions.KindUnavailable {
			cause.RetryAfter = 3 * time.Second
		}
		h, err := NewServer(Config{Ledger: s.base, View: func(Principal) ledger.Ledger { return failing{s.base, cause} }, Log: slog.New(slog.NewJSONHandler(&log, nil)),
			Authenticate: func(string) (Principal, bool) { return Principal{Token: "t"}, true }})
		if err != nil {
			t.Fatal(err)
		}
		w := post(h, opGet, `"sbx-x"`, func(r *http.Request) { r.Header.Set(headerRequest, "req-7") })
		var f failure
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || w.Code != c.status || f.Kind != kind || f.Remedy == "" {
			t.Errorf("%s: %d %s, %v", kind, w.Code, w.Body, err)
		}
		if told := strings.Contains(w.Body.String(), "inner.test"); told == c.hidden {
			t.Errorf("%s: %s", kind, w.Body)
		}
		if c.hidden && (!strings.Contains(w.Body.String(), "req-7") || !strings.Contains(log.String(), "/srv/books/ledger.db on db.inner.test") || !strings.Contains(log.String(), `"id":"req-7"`)) {
			t.Errorf("%s: %s\n%s", kind, w.Body, log.String())
		}
		if kind == extensions.KindUnavailable && (f.RetryAfter != cause.RetryAfter || w.Header().Get("Retry-After") != "3") {
			t.Errorf("the wait: %+v %v", f, w.Header())
		}
	}
}
