package resttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// Run tries every fault, each at a vendor of its own.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts no vendors")
	}
	check := func(name string, start func(*httptest.Server), f func(*front)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(stand(t, h, start))
		})
	}
	var read atomic.Bool
	t.Cleanup(func() {
		if read.Load() {
			t.Errorf("an answer of %d MiB was read to its end", hugeSize>>20)
		}
	})
	for _, x := range faults(&read) {
		check(x.name, (*httptest.Server).Start, func(f *front) { f.try(x) })
	}
	check("quota", (*httptest.Server).Start, func(f *front) {
		f.strike(h.Quota, h.IsCreate)
		f.create(fault{change: kinds{extensions.KindExhausted}})
	})
	check("refused-connection", (*httptest.Server).Start, func(f *front) {
		f.server.CloseClientConnections()
		_ = f.server.Listener.Close()
		f.looks(extensions.Handle{}, fault{look: nowhere})
		f.create(fault{change: nowhere})
	})
	check("untrusted-certificate", (*httptest.Server).StartTLS, func(f *front) {
		f.looks(extensions.Handle{}, fault{look: nowhere})
		f.create(fault{change: nowhere})
		if n := f.all.Load(); n != 0 {
			f.Errorf("%d requests were sent to somebody unknown", n)
		}
	})
	check("redirect", (*httptest.Server).Start, redirected)
	check("slow", (*httptest.Server).Start, slowed)
	check("another-object", (*httptest.Server).Start, another)
	check("secret-in-an-answer", (*httptest.Server).Start, echoed)
	check("lost-when-it-was-done", (*httptest.Server).Start, lost)
	check("delivered-twice", (*httptest.Server).Start, twice)
	check("late-list", (*httptest.Server).Start, late)
	check("pages-without-end", (*httptest.Server).Start, func(f *front) {
		n := 0
		f.pages(func() string { n++; return "t" + strconv.Itoa(n) })
	})
	check("pages-in-circles", (*httptest.Server).Start, func(f *front) {
		n := 0
		f.pages(func() string { n++; return "t" + strconv.Itoa(n%2) })
	})
}

// try lets a fault answer everything, then a create alone, then an end alone.
func (f *front) try(x fault) {
	h := f.made()
	f.strike(x.answer, nil)
	f.looks(h, x)
	f.strike(x.answer, f.h.IsCreate)
	f.create(x)
	f.strike(x.answer, f.h.IsEnd)
	report, err := within(f, "teardown", func(ctx context.Context) (extensions.CleanupReport, error) { return f.b.Teardown(ctx, h) })
	if err == nil || report.AlreadyGone {
		f.Errorf("teardown: %+v, %v, although nobody said that it is gone", report, err)
	}
	ended := x.change
	if x.maybe { // or it looked, and the sandbox is still there
		ended = append(slices.Clone(ended), extensions.KindUnavailable)
	}
	f.judge("teardown", err, ended, x.retry)
	f.strike(nil, nil)
	if all, err := f.b.Status(f.Context(), []extensions.Handle{h}); err != nil || all[0].Phase == extensions.PhaseAbsent {
		f.Errorf("after the fault: %v, %v", all, err)
	}
}

// looks asks all that has no effect. A zero handle is not asked for.
func (f *front) looks(h extensions.Handle, x fault) {
	f.Helper()
	_, err := within(f, "list", func(ctx context.Context) ([]extensions.Observation, error) { return f.b.Status(ctx, nil) })
	f.judge("list", err, x.look, x.retry)
	id, _ := extensions.NewID(nil)
	_, err = within(f, "find", func(ctx context.Context) (extensions.Handle, error) { return f.b.Find(ctx, id) })
	f.judge("find", err, x.look, x.retry)
	if h.IsZero() {
		return
	}
	all, err := within(f, "status", func(ctx context.Context) ([]extensions.Observation, error) {
		return f.b.Status(ctx, []extensions.Handle{h})
	})
	if err == nil {
		if len(all) != 1 || all[0].Phase != extensions.PhaseUnreachable {
			f.Fatalf("status: %+v, want unreachable", all)
		}
		err = all[0].Err
	}
	f.judge("status", err, x.look, x.retry)
}

// create provisions once.
func (f *front) create(x fault) {
	f.Helper()
	spec := exttest.Spec(f, f.cfg)
	before := f.creates.Load()
	h, err := within(f, "provision", func(ctx context.Context) (extensions.Handle, error) {
		h, _, err := f.b.Provision(ctx, spec)
		return h, err
	})
	if !h.IsZero() {
		f.Cleanup(func() { f.remove(h) })
	}
	f.judge("provision", err, x.change, x.retry)
	if x.maybe != (h.ID == spec.ID) || !x.maybe != h.IsZero() {
		f.Errorf("provision: the handle is %q; the sandbox may exist: %t", h.Encode(), x.maybe)
	}
	if n := f.creates.Load() - before; n > 1 {
		f.Errorf("provision: the vendor was asked %d times; only the engine repeats", n)
	}
}

// within makes a call and sees that it ends.
func within[T any](f *front, what string, call func(context.Context) (T, error)) (T, error) {
	f.Helper()
	begun := time.Now()
	out, err := call(f.Context())
	if took := time.Since(begun); took > limit {
		f.Errorf("%s took %s", what, took)
	}
	return out, err
}

// judge checks an error's kind, its wait and its words.
func (f *front) judge(what string, err error, want kinds, retry [2]time.Duration) {
	f.Helper()
	var e *extensions.Error
	if !errors.As(err, &e) || !slices.Contains(want, e.Kind) {
		f.Errorf("%s: %s (%v), want one of %v", what, extensions.KindOf(err), err, want)
		return
	}
	if retry[1] > 0 && (e.RetryAfter < retry[0] || e.RetryAfter > retry[1]) {
		f.Errorf("%s: come again after %s, want %s to %s", what, e.RetryAfter, retry[0], retry[1])
	}
	text := fmt.Sprint(err, extensions.RemedyOf(err))
	if strings.Contains(text, f.h.Secret(f.cfg)) || strings.ContainsFunc(text, unicode.IsControl) || len(text) > 2000 {
		f.Errorf("%s: the message is not fit to show: %q", what, text)
	}
}

func redirected(f *front) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { f.Error("the redirect was followed") }))
	f.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		f.try(fault{answer: answer(status, asPage, page, "Location", elsewhere.URL+"/sandboxes"), look: nowhere, change: nowhere})
	}
}

// slowed bounds calls by their context: nobody waits longer.
func slowed(f *front) {
	h := f.made()
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(f.Context(), time.Second)
		f.Cleanup(cancel)
		return ctx
	}
	begun := time.Now()
	f.strike(slow, nil)
	if all, err := f.b.Status(short(), []extensions.Handle{h}); err == nil && all[0].Phase != extensions.PhaseUnreachable {
		f.Errorf("status: %+v", all)
	}
	_, err := f.b.Status(short(), nil)
	f.judge("list", err, append(slices.Clone(unheard), extensions.KindTimeout), [2]time.Duration{})
	f.strike(slow, f.h.IsCreate)
	spec := exttest.Spec(f, f.cfg)
	made, _, err := f.b.Provision(short(), spec)
	f.judge("provision", err, unclear, [2]time.Duration{})
	if made.ID != spec.ID {
		f.Errorf("provision: the sandbox may exist, and the handle is %q", made.Encode())
	}
	if took := time.Since(begun); took > limit {
		f.Errorf("three calls of a second took %s", took)
	}
}

// another answers about another object than the one asked for.
func another(f *front) {
	h := f.made()
	f.strike(func(w http.ResponseWriter, r *http.Request) {
		heard := httptest.NewRecorder()
		f.vendor.ServeHTTP(heard, r)
		body := f.h.Other(heard.Body.Bytes())
		if heard.Code == http.StatusOK && bytes.Equal(body, heard.Body.Bytes()) {
			f.Error("the harness changed nothing")
		}
		w.Header().Set("Content-Type", asJSON)
		w.WriteHeader(heard.Code)
		_, _ = io.Copy(w, bytes.NewReader(body))
	}, nil)
	all, err := f.b.Status(f.Context(), []extensions.Handle{h})
	if err == nil && all[0].Phase != extensions.PhaseUnreachable {
		f.Errorf("status by an answer about another sandbox: %+v", all)
	}
	if report, err := f.b.Teardown(f.Context(), h); err == nil {
		f.Errorf("teardown by an answer about another sandbox: %+v", report)
	}
}

// echoed puts the credential into every field of an error answer.
func echoed(f *front) {
	secret := f.h.Secret(f.cfg)
	body := strings.ReplaceAll(
		`{"code":400,"message":"KEY \u001b[31m\nforged","error":"KEY","error_code":"KEY","detail":["KEY"]}`, "KEY", secret)
	for _, status := range []int{400, 401, 404, 409, 422, 429, 500} {
		f.strike(answer(status, asJSON, body, "Retry-After", secret, "Server", secret), nil)
		_, err := f.b.Status(f.Context(), nil)
		f.judge("list", err, kinds{extensions.KindOf(err)}, [2]time.Duration{})
		f.strike(answer(status, asJSON, body), f.h.IsCreate)
		h, _, err := f.b.Provision(f.Context(), exttest.Spec(f, f.cfg))
		f.judge("provision", err, kinds{extensions.KindOf(err)}, [2]time.Duration{})
		if strings.Contains(h.Encode(), secret) {
			f.Error("the credential is in the handle")
		}
	}
}

// pages answers listings with pages that always name another.
func (f *front) pages(next func() string) {
	f.strike(func(w http.ResponseWriter, _ *http.Request) { f.h.Page(w, next()) }, f.h.IsList)
	_, err := within(f, "list", func(ctx context.Context) ([]extensions.Observation, error) { return f.b.Status(ctx, nil) })
	f.judge("list", err, kinds{extensions.KindUnavailable, extensions.KindIndeterminate}, [2]time.Duration{})
	if n := f.all.Load(); n > 5000 {
		f.Errorf("%d pages were asked for", n)
	}
}
