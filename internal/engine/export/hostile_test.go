package export

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A receiver that is answered for after an attempt that was lost may have the
// events from that one, whatever it says of the last.
func TestALostAttemptIsNotForgottenForALaterAnswer(t *testing.T) {
	t.Parallel()
	l, c := newLedger(t)
	lives(t, l, 1)
	r := newReceiver(t)
	r.set(func(w http.ResponseWriter, n int, _ []event) (bool, bool) {
		if n == 1 {
			cut(w)
			return true, true
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true, false
	})
	if _, err := send(l, r.URL, ""); !extensions.IsKind(err, extensions.KindUnauthorized) || len(r.chain()) != 5 {
		t.Fatalf("%v, %d arrived", err, len(r.chain()))
	}
	r.set(nil)
	c.pass(25 * time.Hour)
	out, err := send(l, r.URL, "")
	if err != nil || len(out.Withheld) != 5 || r.twice != 0 || out.Withheld[0].State != ledger.WithheldAmbiguous {
		t.Errorf("%v, %d twice, %+v", err, r.twice, out)
	}
}

// The withdrawal of one run is not about what another has begun since.
func TestARunTakesBackOnlyItsOwnAttempt(t *testing.T) {
	t.Parallel()
	l, c := newLedger(t)
	lives(t, l, 30) // 150 events, two batches
	r := newReceiver(t)
	var other error
	r.set(func(w http.ResponseWriter, n int, _ []event) (bool, bool) {
		if n > 1 {
			return false, false
		}
		// While this request waits, another run delivers the batch, sends the next and dies.
		hits := 0
		dying := failpointtest.Inject(ctx, "export.sent", func() error {
			if hits++; hits == 2 {
				return failpointtest.ErrInjected
			}
			return nil
		})
		r.mu.Unlock()
		_, other = Send(dying, l, "acme", Options{Target: Target{URL: r.URL}, Retries: swift})
		r.mu.Lock()
		w.WriteHeader(http.StatusUnauthorized)
		return true, false
	})
	_, err := send(l, r.URL, "")
	r.set(nil)
	if !extensions.IsKind(err, extensions.KindUnauthorized) || !errors.Is(other, failpointtest.ErrInjected) {
		t.Fatal(err, other)
	}
	before := r.twice
	c.pass(25 * time.Hour)
	out, err := send(l, r.URL, "")
	if err != nil || r.twice != before || len(out.Withheld) == 0 || out.Withheld[0].State != ledger.WithheldAmbiguous {
		t.Errorf("%v, %d came twice, %+v", err, r.twice-before, out)
	}
}

// What is answered with success by something that is no receiver, or that took
// a part, is not taken for delivered.
func TestASuccessThatIsNone(t *testing.T) {
	t.Parallel()
	t.Run("a page", func(t *testing.T) {
		t.Parallel()
		l, _ := newLedger(t)
		lives(t, l, 1)
		r := newReceiver(t)
		r.set(func(w http.ResponseWriter, _ int, _ []event) (bool, bool) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<html>please log in</html>")
			return true, false
		})
		if out, err := send(l, r.URL, ""); !extensions.IsKind(err, extensions.KindInvalid) || out.Events != 0 || out.Delivered != 0 ||
			len(out.Withheld) != 0 {
			t.Errorf("%v, %+v", err, out)
		}
		r.set(nil)
		if _, err := send(l, r.URL, ""); err != nil {
			t.Error(err)
		}
		arrived(t, r, recorded(t, l))
	})
	t.Run("a part", func(t *testing.T) {
		t.Parallel()
		l, _ := newLedger(t)
		lives(t, l, 6)
		events := recorded(t, l)
		r := newReceiver(t)
		bad := func(e event) bool { return e.ID == events[16].ID }
		r.set(func(w http.ResponseWriter, _ int, all []event) (bool, bool) {
			if !slices.ContainsFunc(all, bad) {
				return false, false
			}
			r.take(slices.DeleteFunc(slices.Clone(all), bad))
			w.WriteHeader(http.StatusMultiStatus)
			return true, false
		})
		out, err := send(l, r.URL, "")
		if err != nil || len(out.Withheld) != 1 || out.Withheld[0].Seq != 17 || !strings.Contains(out.Withheld[0].Reason, "207") {
			t.Errorf("%v, %+v", err, out)
		}
		arrived(t, r, events, 17)
	})
}

// An answer that is compressed, endless or slow is read as far as a message
// needs it, and no further.
func TestAnAnswerWithoutAnEnd(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter){
		"endless": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			for page := make([]byte, 4096); ; {
				if _, err := w.Write(page); err != nil {
					return
				}
			}
		},
		"not what it says": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "this is no gzip")
		},
		"shorter than it says": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000000")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "no")
		},
		"slow": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			for range 1000 {
				fmt.Fprint(w, "n")
				if http.NewResponseController(w).Flush() != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := newLedger(t)
			lives(t, l, 1)
			served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
			defer served.Close()
			retries := swift
			retries.Request = time.Second
			out, err := Send(ctx, l, "acme", Options{Target: Target{URL: served.URL}, Retries: retries})
			if !extensions.IsKind(err, extensions.KindUnauthorized) || out.Events != 0 || len(err.Error()) > 1000 {
				t.Errorf("%v, %+v", err, out)
			}
		})
	}
}
