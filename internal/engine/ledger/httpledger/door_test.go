package httpledger

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A refusal at the door says nothing of an attempt that was let in before.
func TestALostAttemptIsNotUndoneByARefusalAtTheDoor(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(http.ResponseWriter){
		"the token was revoked": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(http.StatusUnauthorized)
			_ = encode(w, failure{Kind: extensions.KindUnauthorized, Text: "the ledger does not know this token"})
		},
		"something else answers": func(w http.ResponseWriter) { http.Error(w, "no such page", http.StatusNotFound) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var begins atomic.Int64
			s := newShop(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !strings.HasSuffix(r.URL.Path, opBegin) {
						h.ServeHTTP(w, r)
						return
					}
					if begins.Add(1) == 1 {
						h.ServeHTTP(httptest.NewRecorder(), r)
						panic(http.ErrAbortHandler)
					}
					then(w)
				})
			})
			holder, err := s.Holder(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			id, _ := extensions.NewID(nil)
			_, err = s.Begin(context.Background(), ledger.Begin{Key: string(id), Holder: holder, ID: id, Account: "acme/web", Name: "one"})
			if !extensions.IsKind(err, extensions.KindIndeterminate) || begins.Load() != 2 {
				t.Errorf("after %d attempts: %v", begins.Load(), err)
			}
			if _, err := s.base.Get(context.Background(), id); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNothingIsBegunWithAClockThatIsOff(t *testing.T) {
	t.Parallel()
	for off, fits := range map[time.Duration]bool{0: true, time.Minute: true, -3 * time.Hour: false, 3 * time.Hour: false} {
		s := newShop(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
				h.ServeHTTP(w, r)
			})
		})
		holder, err := s.Holder(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		id, _ := extensions.NewID(nil)
		_, err = s.Begin(context.Background(), ledger.Begin{Key: string(id), Holder: holder, ID: id, Account: "acme/web", Name: "one"})
		if fits != (err == nil) || !fits && (!extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "clock is 3h0m0s") || extensions.RemedyOf(err) == "") {
			t.Errorf("%s off: %v", off, err)
		}
		if _, err := s.List(context.Background(), ledger.Filter{}); err != nil {
			t.Errorf("reading goes on: %v", err)
		}
	}
}

func TestAForbiddenPlaceArrivesAsOne(t *testing.T) {
	t.Parallel()
	want := ledger.Forbidden{Account: "acme/web", Place: "ext.ssh@big", Rule: "permission.host", Reason: "policy.acme forbids big"}
	f := asFailure((&extensions.Error{Kind: extensions.KindUnauthorized, Op: "ledger", Err: &want}).WithRemedy("choose another host"))
	var wire bytes.Buffer
	var back failure
	if err := encode(&wire, f); err != nil {
		t.Fatal(err)
	}
	if err := decode(&wire, &back); err != nil {
		t.Fatal(err)
	}
	err := back.err()
	var got *ledger.Forbidden
	if !errors.As(err, &got) || *got != want || !extensions.IsKind(err, extensions.KindUnauthorized) || !strings.Contains(err.Error(), "permission.host") || extensions.RemedyOf(err) != "choose another host" {
		t.Errorf("%v", err)
	}
}

// busyBooks counts who verifies at the same time.
type busyBooks struct {
	ledger.Ledger
	now, most *atomic.Int64
}

func (b busyBooks) Verify(ctx context.Context, _ ...ledger.Head) (ledger.Report, error) {
	n := b.now.Add(1)
	defer b.now.Add(-1)
	for m := b.most.Load(); n > m && !b.most.CompareAndSwap(m, n); m = b.most.Load() {
	}
	time.Sleep(5 * time.Millisecond)
	return ledger.Report{}, ctx.Err()
}

func TestOneVerifiesAtATime(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	books := busyBooks{s.base, &atomic.Int64{}, &atomic.Int64{}}
	h, err := unbounded(s.base)
	if err != nil {
		t.Fatal(err)
	}
	h.View = func(Principal) ledger.Ledger { return books }
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if w := post(h, opVerify, `[]`, nil); w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	all.Wait()
	if n := books.most.Load(); n != 1 {
		t.Errorf("%d at the same time", n)
	}
}

// What one token has under way is bounded; others are not in its way.
func TestLargeRequestsOfATokenWaitForOneAnother(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	var now, most atomic.Int64
	h, err := NewServer(Config{Ledger: s.base, PerSecond: 1e6, Burst: 1e6, View: func(Principal) ledger.Ledger { return s.base },
		Authenticate: func(token string) (Principal, bool) { return Principal{Token: token}, true }})
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	large := func() { // a body that comes to no end until it is let
		body := io.MultiReader(strings.NewReader(`"`), readerFunc(func(p []byte) (int, error) {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			<-open
			now.Add(-1)
			return copy(p, `"`), io.EOF
		}))
		r := httptest.NewRequest(http.MethodPost, prefix+opGet, body)
		r.ContentLength = maxRequest
		r.Header.Set("Authorization", "Bearer a")
		r.Header.Set("Content-Type", contentType)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	var all sync.WaitGroup
	const limit = memoryOfToken / maxRequest
	for range 3 * limit {
		all.Go(large)
	}
	for deadline := time.Now().Add(10 * time.Second); now.Load() < limit && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	w := post(h, opHello, `{}`, func(r *http.Request) { r.Header.Set("Authorization", "Bearer b") })
	if w.Code != http.StatusOK {
		t.Errorf("another token: %d", w.Code)
	}
	close(open)
	all.Wait()
	if n := most.Load(); n != limit {
		t.Errorf("%d at the same time, want %d", n, limit)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestStrangersWriteNothingIntoTheLog(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	h, err := unbounded(s.base)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	h.Log = slog.New(slog.NewTextHandler(&log, nil))
	post(h, "sbxl_secret-in-a-path"+strings.Repeat("x", 9000), `{}`, func(r *http.Request) { r.Header.Del("Authorization") })
	if log.Len() > 500 || strings.Contains(log.String(), "secret-in-a-path") || !strings.Contains(log.String(), "operation=unknown") {
		t.Errorf("%d bytes: %.600s", log.Len(), log.String())
	}
}

func TestTheServersClockIsTold(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	for off, want := range map[time.Duration]time.Duration{0: 0, 5 * time.Second: 0, -5 * time.Second: 0, 3 * time.Hour: 3 * time.Hour, -time.Minute: -time.Minute} {
		c, err := openTo(context.Background(), s.at, t.TempDir(), ledger.Options{Now: func() time.Time { return time.Now().Add(off) }})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Ahead(); (got == 0) != (want == 0) || (got-want).Abs() > 5*time.Second {
			t.Errorf("%s ahead is told as %s", off, got)
		}
		_ = c.Close()
	}
}
