package conformance

import (
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// urlPort is the port inside that the checks of URLs ask for.
const urlPort = 8080

func hookVisit(h Harness) (string, bool) { return "Visit", h.Visit != nil }

var urlChecks = []check{
	{name: "url/reaches-with-its-header", power: extensions.PowerURL, hook: hookVisit, run: func(e *env) {
		_, h, _ := e.ready()
		if u := e.url(h); !e.h.Visit(e.TB, e.cfg, h, urlPort, u.Address, u.Header) {
			e.Errorf("nothing answers at %s with its header", u.Address)
		}
	}},
	{name: "url/header-is-needed", power: extensions.PowerURL, hook: hookVisit, run: func(e *env) {
		_, h, _ := e.ready()
		_, other, _ := e.ready()
		u, theirs := e.url(h), e.url(other)
		shut := e.desc.Capabilities.Ingress == extensions.IngressClosed
		if u.Header.Name == "" {
			if shut {
				e.Error("the address alone lets anybody in, and ingress is declared closed")
			}
			return
		}
		if e.h.Visit(e.TB, e.cfg, h, urlPort, u.Address, extensions.Header{}) {
			e.Errorf("%s answers without its header", u.Address)
		}
		if e.h.Visit(e.TB, e.cfg, h, urlPort, u.Address, theirs.Header) {
			e.Errorf("%s answers with another sandbox's header", u.Address)
		}
	}},
	{name: "url/address-is-no-secret", power: extensions.PowerURL, run: func(e *env) {
		_, h, _ := e.ready()
		u := e.url(h)
		if !strings.Contains(u.Address, "://") || strings.Contains(u.Address, "@") {
			e.Errorf("%q is not a URL for a browser", u.Address)
		}
		if (u.Header.Name == "") != u.Header.Value.IsZero() {
			e.Errorf("the header %q has a name or a value only", u.Header.Name)
		}
		if !u.Header.Value.IsZero() && strings.Contains(u.Address, u.Header.Value.Reveal()) {
			e.Errorf("the address contains the secret of the header %s", u.Header.Name)
		}
	}},
	{name: "url/ends-when-it-says", power: extensions.PowerURL, hook: hookVisit, run: func(e *env) {
		spec, h, _ := e.ready()
		u := e.url(h)
		latest := spec.Deadline.Add(e.desc.Capabilities.DeadlineGrain + time.Second)
		if u.ExpiresAt.IsZero() {
			e.teardown(h)
		} else if left := time.Until(u.ExpiresAt); left <= 0 || u.ExpiresAt.After(latest) {
			e.Fatalf("it ends in %s, and the sandbox at %s", left, spec.Deadline)
		} else if e.h.Advance == nil {
			return // too long to wait
		} else {
			e.advance(left + time.Second)
		}
		if e.h.Visit(e.TB, e.cfg, h, urlPort, u.Address, u.Header) {
			e.Errorf("%s answers after its end", u.Address)
		}
	}},
	{name: "url/gone-is-not-found", power: extensions.PowerURL, run: func(e *env) {
		h := e.gone()
		_, err := power[extensions.URLGiver](e, e.b).URL(e.ctx(), h, urlPort)
		e.wantKind("a URL of what is gone", err, extensions.KindNotFound)
	}},
}

func (e *env) url(h extensions.Handle) extensions.URL {
	e.Helper()
	u, err := power[extensions.URLGiver](e, e.b).URL(e.ctx(), h, urlPort)
	if err != nil {
		e.Fatalf("url: %v", err)
	}
	return u
}
