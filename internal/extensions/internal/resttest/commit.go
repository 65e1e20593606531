package resttest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// lost lets the vendor do what it was asked, and nobody hears of it: whoever does it again makes nothing twice.
func lost(f *front) {
	spec := exttest.Spec(f, f.cfg)
	unheardOf := func(_ http.ResponseWriter, r *http.Request) {
		f.vendor.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	f.strike(unheardOf, f.h.IsCreate)
	h, _, err := f.b.Provision(f.Context(), spec)
	f.judge("provision", err, unclear, [2]time.Duration{})
	if h.ID != spec.ID {
		f.Fatalf("provision: the sandbox exists, and the handle is %q", h.Encode())
	}
	f.strike(nil, nil)
	f.Cleanup(func() { f.remove(h) })
	again, _, err := f.b.Provision(f.Context(), spec)
	if err != nil {
		f.Fatalf("the same create again: %v", err)
	}
	f.once(again)
	f.strike(unheardOf, f.h.IsEnd)
	_, _ = f.b.Teardown(f.Context(), again) // it may look, and see that it has gone
	f.strike(nil, nil)
	f.ends(again)
}

// twice delivers each change twice, as a gateway may that retries. The second answer is the one that is heard.
func twice(f *front) {
	doubled := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		for _, to := range []http.ResponseWriter{httptest.NewRecorder(), w} {
			again := r.Clone(r.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			f.vendor.ServeHTTP(to, again)
		}
	}
	f.strike(doubled, func(r *http.Request) bool { return f.h.IsCreate(r) || f.h.IsEnd(r) })
	spec := exttest.Spec(f, f.cfg)
	if claim := f.h.New().Describe().Find.Claim; claim > 0 {
		spec.Deadline = time.Now().Add(claim) // as the engine asks for it
	}
	h, _, err := f.b.Provision(f.Context(), spec)
	if err != nil {
		f.Fatalf("provision: %v", err)
	}
	f.Cleanup(func() { f.remove(h) })
	f.ends(h)
}

// late lists nothing that is there: what a listing lacks is asked for before it counts as absent.
func late(f *front) {
	h := f.made()
	f.strike(func(w http.ResponseWriter, _ *http.Request) { f.h.Page(w, "") }, f.h.IsList)
	if all, err := f.b.Status(f.Context(), nil); err != nil || len(all) != 0 {
		f.Fatalf("list: %+v, %v; the harness answers with an empty page", all, err)
	}
	if all, err := f.b.Status(f.Context(), []extensions.Handle{h}); err != nil || all[0].Phase == extensions.PhaseAbsent {
		f.Errorf("status of what is not listed: %+v, %v", all, err)
	}
	if _, err := f.b.Find(f.Context(), h.ID); err != nil && !extensions.IsKind(err, extensions.KindIndeterminate) {
		f.Errorf("find of what is not listed: %v", err)
	}
	if report, err := f.b.Teardown(f.Context(), h); err != nil || report.AlreadyGone {
		f.Errorf("teardown of what is not listed: %+v, %v", report, err)
	}
}

// once demands that a sandbox is there, and no other.
func (f *front) once(h extensions.Handle) {
	f.Helper()
	all, err := f.b.Status(f.Context(), nil)
	if err != nil || len(all) != 1 || all[0].ID != h.ID {
		f.Errorf("list: %+v, %v; want %s alone", all, err, h.ID)
	}
}

// ends tears a sandbox down, as often as the vendor asks for that. Then the account has none, but what a vendor without unique
// names made twice: that ends with the first deadline of its create.
func (f *front) ends(h extensions.Handle) {
	f.Helper()
	begun := time.Now()
	_, err := f.b.Teardown(f.Context(), h)
	for extensions.IsKind(err, extensions.KindUnavailable) && time.Since(begun) < limit/4 {
		time.Sleep(100 * time.Millisecond)
		_, err = f.b.Teardown(f.Context(), h)
	}
	all, lerr := f.b.Status(f.Context(), nil)
	if err != nil || lerr != nil {
		f.Errorf("teardown: %v; list: %v", err, lerr)
	}
	claim := f.h.New().Describe().Find.Claim
	for _, o := range all {
		if claim == 0 || o.Handle.Ref == h.Ref || o.Deadline.IsZero() || time.Until(o.Deadline) > claim {
			f.Errorf("after the teardown there is %+v", o)
		}
	}
}
