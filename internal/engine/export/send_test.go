package export

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// swift waits for nothing longer than a test can.
var swift = Retries{Max: 2, Min: time.Millisecond, Cap: 2 * time.Second, Request: time.Minute}

func send(l Ledger, url, sink string) (Sending, error) {
	return Send(ctx, l, "acme", Options{Target: Target{URL: url, Sink: sink}, Retries: swift})
}

func recorded(t testing.TB, l Ledger) []ledger.Event {
	t.Helper()
	events, err := l.Events(ctx, "acme", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// arrived demands that the chain is with the receiver, whole and in order, but
// for events that are missing.
func arrived(t interface {
	Helper()
	Errorf(string, ...any)
}, r *receiver, events []ledger.Event, missing ...int64) {
	t.Helper()
	got := r.chain()
	want := slices.DeleteFunc(slices.Clone(events), func(e ledger.Event) bool { return slices.Contains(missing, e.Seq) })
	if len(got) != len(want) {
		t.Errorf("%d events arrived, not %d", len(got), len(want))
		return
	}
	for i, e := range want {
		if got[i].ID != e.ID || got[i].raw != string(e.CloudEvent) || got[i].ChainHash != e.ID {
			t.Errorf("event %d of those that arrived is %s, not %s", i, got[i].Sequence, e.ID)
		}
	}
}

func TestEventsArriveWithTheUsageTheySettle(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	l, _ := newLedger(t)
	r := newReceiver(t)
	lives(t, l, 60)
	out, err := send(l, r.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	events := recorded(t, l)
	arrived(t, r, events)
	if r.twice != 0 || r.largest > batchEvents || out.Events != 300 || out.Usage != 180 || out.Delivered != 300 || len(out.Withheld) != 0 ||
		out.Sink != r.url() {
		t.Errorf("%d twice, at most %d in a batch, %+v", r.twice, r.largest, out)
	}
	sums := map[string]*big.Rat{"amount": new(big.Rat), "billed": new(big.Rat), "quantity": new(big.Rat)}
	for _, u := range r.usage() {
		if u.Subject != "acme/web" || u.Source != "urn:sandboxer:ledger:"+l.ID() || u.Data["actor"] != "ann" || u.Data["currency"] != "EUR" ||
			u.Data["extension"] != "ext.x" ||
			!u.Time.Equal(start.Add(time.Hour)) || u.ChainHash == u.ID ||
			!slices.ContainsFunc(events, func(e ledger.Event) bool { return e.ID == u.ChainHash && e.Subject == u.Data["sandbox_id"] }) {
			t.Fatalf("%s", u.raw)
		}
		for name, sum := range sums {
			v, ok := new(big.Rat).SetString(u.Data[name].(string))
			if !ok {
				t.Fatalf("%s is no number: %s", name, u.raw)
			}
			sum.Add(sum, v)
		}
	}
	// 60 creations of 600 nano-units, and two vCPUs for an hour, which are
	// 7200 core-seconds, on a key of the user's.
	for name, want := range map[string]*big.Rat{"amount": big.NewRat(60*100_800_600, 1e9), "billed": big.NewRat(60*600, 1e9),
		"quantity": big.NewRat(60*7201, 1)} {
		if sums[name].Cmp(want) != 0 {
			t.Errorf("%s: %s, want %s", name, sums[name].FloatString(9), want.FloatString(9))
		}
	}
	requests := r.requests
	if out, err := send(l, r.URL, ""); err != nil || out.Events != 0 || r.requests != requests {
		t.Errorf("sent again: %+v, %v", out, err)
	}
	lives(t, l, 0)
	lived{account: "acme/app", name: "later", from: start, to: start.Add(time.Hour), rates: bookRates}.live(t, l)
	if out, err := send(l, r.URL, ""); err != nil || out.Events != 5 {
		t.Errorf("%+v, %v", out, err)
	}
	arrived(t, r, recorded(t, l))
}

// Whatever goes wrong, in whatever order: every event arrives, in order, under
// one id, and where it is not known whether it did, at most a day later.
func TestFaultsLoseNothing(t *testing.T) {
	exttest.Alone(t)
	t.Parallel()
	l, _ := newLedger(t)
	lives(t, l, 45)
	events := recorded(t, l)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		r := &receiver{t: t, seen: map[string]string{}}
		r.Server = httptest.NewServer(r)
		defer r.Close()
		faults := rapid.SliceOfN(rapid.IntRange(0, 7), 0, 12).Draw(rt, "faults")
		r.set(func(w http.ResponseWriter, n int, events []event) (answered, taken bool) {
			if n > len(faults) || faults[n-1] == 7 && len(events) == 1 {
				return false, false
			}
			switch faults[n-1] {
			case 1:
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
			case 2:
				w.WriteHeader(http.StatusInternalServerError)
			case 3:
				w.WriteHeader(http.StatusBadGateway)
				return true, true
			case 4:
				cut(w)
			case 5:
				cut(w)
				return true, true
			case 6:
				w.WriteHeader(http.StatusUnauthorized)
			case 7:
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			default:
				return false, false
			}
			return true, false
		})
		sink := fmt.Sprint("hub", round)
		for runs := 0; ; runs++ {
			out, err := send(l, r.URL, sink)
			if err == nil {
				if len(out.Withheld) != 0 || out.Delivered != int64(len(events)) {
					rt.Fatalf("%+v", out)
				}
				break
			}
			if runs > len(faults) {
				rt.Fatal("it does not end: ", err)
			}
		}
		arrived(rt, r, events)
		if len(r.usage()) != 135 {
			rt.Errorf("%d usage events", len(r.usage()))
		}
	})
}

func TestABadEventHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	l, _ := newLedger(t)
	r := newReceiver(t)
	lives(t, l, 30)
	events := recorded(t, l)
	bad := []int64{1, 37, 38, 105, 150}
	r.refuse = func(e event) bool {
		return slices.ContainsFunc(bad, func(n int64) bool { return e.ID == events[n-1].ID })
	}
	out, err := send(l, r.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	var held []int64
	for _, h := range out.Withheld {
		held = append(held, h.Seq)
		if h.State != ledger.WithheldRejected || !strings.Contains(h.Reason, "400") || !strings.Contains(h.Reason, "is not for us") {
			t.Errorf("%+v", h)
		}
	}
	if !slices.Equal(held, bad) {
		t.Errorf("%+v", out)
	}
	arrived(t, r, events, bad...)
	if len(r.usage()) != 90 {
		t.Errorf("only %d usage events: a refused event has taken some with it", len(r.usage()))
	}
	again, err := send(l, r.URL, "")
	if err != nil || len(again.Withheld) != len(bad) || again.Events != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	// Somebody asks: of those, one is still refused.
	bad = bad[1:2]
	resent, err := Send(ctx, l, "acme", Options{Target: Target{URL: r.URL}, Retries: swift, Resend: true})
	if err != nil || resent.Events != 4 || len(resent.Withheld) != 1 || resent.Withheld[0].Seq != 37 {
		t.Errorf("%+v, %v", resent, err)
	}
	if n := len(r.chain()); n != 149 {
		t.Errorf("%d events", n)
	}
}

// What takes nothing, however often it is sent to, is the wrong place: nothing
// is held for it, and nothing is missing once it is right.
func TestAnEndpointThatTakesNothingIsTold(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	l, c := newLedger(t)
	r := newReceiver(t)
	lives(t, l, 30)
	r.refuse = func(event) bool { return true }
	for range 3 {
		out, err := send(l, r.URL, "")
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(extensions.RemedyOf(err), "address") || len(out.Withheld) != 0 ||
			out.Delivered != 0 {
			t.Errorf("%+v, %v", out, err)
		}
		c.pass(25 * time.Hour)
	}
	r.refuse = nil
	if out, err := send(l, r.URL, ""); err != nil || len(out.Withheld) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	arrived(t, r, recorded(t, l))
}

// A receiver that has no use for what the chain begins with gets the rest.
func TestARefusedBeginningHoldsUpNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	l, _ := newLedger(t)
	lives(t, l, 30)
	events := recorded(t, l)
	r := newReceiver(t)
	var bad []int64
	for seq := range int64(99) {
		bad = append(bad, seq+1)
	}
	r.refuse = func(e event) bool {
		return slices.ContainsFunc(bad, func(n int64) bool { return e.ID == events[n-1].ID })
	}
	out, err := send(l, r.URL, "")
	if err != nil || len(out.Withheld) != len(bad) {
		t.Errorf("%d held, %v", len(out.Withheld), err)
	}
	arrived(t, r, events, bad...)
}

// Few events that are refused and come with no others are not worth a word
// about the address.
func TestFewRefusedEventsAreHeld(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	lives(t, l, 1)
	r := newReceiver(t)
	r.refuse = func(e event) bool { return strings.HasPrefix(e.Type, "budget") }
	for n := range wrongPlace {
		if _, err := l.PutBudget(ctx, ledger.Budget{Account: "acme", Name: "all", Currency: "USD", Limit: int64(n + 1)}); err != nil {
			t.Fatal(err)
		}
		out, err := send(l, r.URL, "")
		if err != nil || len(out.Withheld) != n+1 {
			t.Errorf("%+v, %v", out, err)
		}
	}
}

func TestWhatIsWrongWithThePlaceHoldsNoEvent(t *testing.T) {
	t.Parallel()
	l, c := newLedger(t)
	lives(t, l, 1)
	for status, kind := range map[int]extensions.Kind{
		301: extensions.KindInvalid, 308: extensions.KindInvalid, 401: extensions.KindUnauthorized, 403: extensions.KindUnauthorized,
		404: extensions.KindInvalid, 405: extensions.KindInvalid, 415: extensions.KindInvalid, 501: extensions.KindInvalid,
		429: extensions.KindUnavailable,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			r := newReceiver(t)
			elsewhere := newReceiver(t)
			r.set(func(w http.ResponseWriter, _ int, _ []event) (bool, bool) {
				w.Header().Set("Location", elsewhere.url())
				w.WriteHeader(status)
				return true, false
			})
			out, err := send(l, r.URL, "")
			if !extensions.IsKind(err, kind) || extensions.RemedyOf(err) == "" || out.Events != 0 || elsewhere.requests != 0 {
				t.Fatalf("%v, %+v", err, out)
			}
			if want := map[int]int{429: 1 + swift.Max}[status]; r.requests != max(want, 1) {
				t.Errorf("%d requests", r.requests)
			}
			// It has nothing for certain: nothing becomes ambiguous, ever.
			c.pass(48 * time.Hour)
			r.set(nil)
			if out, err := send(l, r.URL, ""); err != nil || out.Events != 5 || len(out.Withheld) != 0 {
				t.Fatalf("%v, %+v", err, out)
			}
		})
	}
}

func TestALongWaitEndsTheRun(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	r := newReceiver(t)
	lives(t, l, 1)
	r.set(func(w http.ResponseWriter, _ int, _ []event) (bool, bool) {
		w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
		return true, false
	})
	_, err := send(l, r.URL, "")
	var e *extensions.Error
	if !errors.As(err, &e) || e.Kind != extensions.KindUnavailable || e.RetryAfter < 50*time.Minute || r.requests != 1 {
		t.Errorf("%v after %d requests", err, r.requests)
	}
}

// A run that dies at any point between reading and noting.
func TestADeathLosesAndRepeatsNothingUnseen(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	for _, point := range failpointtest.Names("export.") {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			l, c := newLedger(t)
			lives(t, l, 25)
			events := recorded(t, l)
			r := newReceiver(t)
			hits := 0
			dying := failpointtest.Inject(ctx, point, func() error {
				if hits++; hits == 2 {
					return failpointtest.ErrInjected
				}
				return nil
			})
			o := Options{Target: Target{URL: r.URL, Sink: "hub"}, Retries: swift}
			if _, err := Send(dying, l, "acme", o); !errors.Is(err, failpointtest.ErrInjected) {
				t.Fatal(err)
			}
			c.pass(23 * time.Hour)
			if out, err := Send(ctx, l, "acme", o); err != nil || len(out.Withheld) != 0 {
				t.Fatalf("%v, %+v", err, out)
			}
			arrived(t, r, events)
			if again := r.twice > 0; again != (point == "export.sent") {
				t.Errorf("sent again: %t", again)
			}
		})
	}
}

// After a day a receiver may have forgotten the ids: what it may have is not
// sent again by itself.
func TestWhatMayHaveArrivedIsAmbiguousAfterADay(t *testing.T) {
	t.Parallel()
	l, c := newLedger(t)
	lives(t, l, 3)
	events := recorded(t, l)
	r := newReceiver(t)
	r.set(func(w http.ResponseWriter, _ int, _ []event) (bool, bool) { cut(w); return true, true })
	if out, err := send(l, r.URL, ""); !extensions.IsKind(err, extensions.KindUnreachable) || len(out.Withheld) != 0 {
		t.Fatalf("%v, %+v", err, out)
	}
	r.set(nil)
	lived{account: "acme/app", name: "later", from: start, to: start.Add(time.Hour), rates: bookRates}.live(t, l)
	c.pass(25 * time.Hour)
	out, err := send(l, r.URL, "")
	if err != nil || out.Events != 5 || len(out.Withheld) != 15 || out.Withheld[0].State != ledger.WithheldAmbiguous {
		t.Fatalf("%v, %+v", err, out)
	}
	twice := r.twice
	if out, err = Send(ctx, l, "acme", Options{Target: Target{URL: r.URL}, Retries: swift, Resend: true}); err != nil || len(out.Withheld) != 0 ||
		out.Events != 15 {
		t.Fatalf("%v, %+v", err, out)
	}
	if r.twice == twice {
		t.Error("nothing was sent again")
	}
	arrived(t, r, append(events, recorded(t, l)[15:]...))
}

// The day of an event begins with its own first attempt: what was sent before
// goes again without those that were not.
func TestWhatWasSentGoesAgainAlone(t *testing.T) {
	t.Parallel()
	l, c := newLedger(t)
	lives(t, l, 1)
	r := newReceiver(t)
	r.set(func(w http.ResponseWriter, _ int, _ []event) (bool, bool) { cut(w); return true, false })
	if _, err := send(l, r.URL, ""); !extensions.IsKind(err, extensions.KindUnreachable) {
		t.Fatal(err)
	}
	lived{account: "acme/app", name: "later", from: start, to: start.Add(time.Hour), rates: bookRates}.live(t, l)
	c.pass(23 * time.Hour)
	var first []string
	r.set(func(_ http.ResponseWriter, _ int, events []event) (bool, bool) {
		if first != nil {
			return false, false
		}
		for _, e := range events {
			if e.Type != UsageType {
				first = append(first, e.Sequence)
			}
		}
		return false, false
	})
	if _, err := send(l, r.URL, ""); err != nil {
		t.Fatal(err)
	}
	if len(first) != 5 {
		t.Errorf("sent again with others: %s", first)
	}
	arrived(t, r, recorded(t, l))
}

func TestSeveralExportersAtOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	l, _ := newLedger(t)
	r := newReceiver(t)
	lives(t, l, 60)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if out, err := send(l, r.URL, ""); err != nil || len(out.Withheld) != 0 {
				t.Errorf("%v, %+v", err, out)
			}
		})
	}
	wg.Wait()
	arrived(t, r, recorded(t, l))
	if len(r.usage()) != 180 {
		t.Errorf("%d usage events", len(r.usage()))
	}
}

func TestACancelledRunGoesOnLater(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	r := newReceiver(t)
	lives(t, l, 30)
	cancelled, cancel := context.WithCancel(ctx)
	r.set(func(http.ResponseWriter, int, []event) (bool, bool) { cancel(); return false, false })
	_, err := Send(cancelled, l, "acme", Options{Target: Target{URL: r.URL}, Retries: swift})
	if !extensions.IsKind(err, extensions.KindInterrupted) {
		t.Fatal(err)
	}
	r.set(nil)
	if _, err := send(l, r.URL, ""); err != nil {
		t.Fatal(err)
	}
	arrived(t, r, recorded(t, l))
}

func TestAnEndpointIsAuthenticAndItsTokenSecret(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	lives(t, l, 1)
	r := &receiver{t: t, seen: map[string]string{}, token: "s3cr3t-t0ken"}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are to fail
	r.StartTLS()
	t.Cleanup(r.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	try := func(target Target) error {
		_, err := Send(ctx, l, "acme", Options{Target: target, Retries: swift})
		if err != nil && (strings.Contains(err.Error(), "s3cr3t") || strings.Contains(extensions.RemedyOf(err), "s3cr3t")) {
			t.Errorf("the token is told: %v", err)
		}
		return err
	}
	if err := try(Target{URL: r.URL, Token: r.token}); !extensions.IsKind(err, extensions.KindUnreachable) || r.requests != 0 ||
		!strings.Contains(extensions.RemedyOf(err), "--ca-file") {
		t.Errorf("sent to one that nobody vouches for: %v / %s", err, extensions.RemedyOf(err))
	}
	if err := try(Target{URL: r.URL, CA: ca}); !extensions.IsKind(err, extensions.KindUnauthorized) {
		t.Errorf("without a token: %v", err)
	}
	if err := try(Target{URL: r.URL, CA: ca, Token: "s3cr3t-wrong"}); !extensions.IsKind(err, extensions.KindUnauthorized) {
		t.Errorf("with another token: %v", err)
	}
	if err := try(Target{URL: r.URL, CA: ca, Token: r.token}); err != nil {
		t.Error(err)
	}
	arrived(t, r, recorded(t, l))
	for name, target := range map[string]Target{
		"not encrypted":           {URL: "http://example.com/api"},
		"a password in it":        {URL: "https://ann:s3cr3t@example.com/"},
		"a query":                 {URL: "https://example.com/?token=s3cr3t"},
		"no host":                 {URL: "https:///api"},
		"no scheme":               {URL: "example.com"},
		"a file":                  {URL: "file:///etc/passwd"},
		"not a URL":               {URL: "https://exa mple/s3cr3t"},
		"a token of two lines":    {URL: "https://example.com", Token: "s3cr3t\nx: y"},
		"authorities that are no": {URL: "https://example.com", CA: []byte("none")},
	} {
		if err := try(target); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
