package place

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// one is an extension that says nothing of whose its backends are; named one that does.
type one struct{ extensions.Extension }

type named struct{ extensions.Extension }

func (named) Identity(cfg extensions.Config) string {
	return cfg.Credentials["project"].Reveal()
}

func TestAnIdentityIsOfTheAccountOrElseOfTheCredential(t *testing.T) {
	t.Parallel()
	cfg := func(account string, values ...string) extensions.Config {
		c := extensions.Config{Account: account, Credentials: map[string]extensions.Secret{}}
		for i := 0; i < len(values); i += 2 {
			c.Credentials[values[i]] = extensions.NewSecret(values[i+1])
		}
		return c
	}
	rented := extensions.Descriptor{Handler: "x", Places: []extensions.Place{extensions.PlaceAccount}}
	own := extensions.Descriptor{Handler: "x", Places: []extensions.Place{extensions.PlaceMachine, extensions.PlaceHost}}
	key := identityOf(one{}, rented, cfg("a/b", "key", "1", "project", "p"))
	if len(key) != 16 || key != identityOf(one{}, rented, cfg("a/b", "project", "p", "key", "1")) {
		t.Errorf("%q", key)
	}
	for what, other := range map[string]string{
		"another key":               identityOf(one{}, rented, cfg("a/b", "key", "2", "project", "p")),
		"values changed places":     identityOf(one{}, rented, cfg("a/b", "key", "p", "project", "1")),
		"another account of ours":   identityOf(one{}, rented, cfg("a/c", "key", "1", "project", "p")),
		"a name":                    identityOf(named{}, rented, cfg("a/b", "key", "1", "project", "p")),
		"a place of the user's own": identityOf(one{}, own, cfg("a/b", "key", "1", "project", "p")),
		"no credential":             identityOf(one{}, rented, cfg("a/b")),
	} {
		if other == key || (other == "") != (what == "a place of the user's own" || what == "no credential") {
			t.Errorf("%s: %q and %q", what, key, other)
		}
	}
	if a, b := identityOf(named{}, rented, cfg("a/b", "key", "1", "project", "p")), identityOf(named{}, rented,
		cfg("a/b", "key", "2", "project", "p")); a != b {
		t.Errorf("a new key of one project: %q and %q", a, b)
	}
	if a := identityOf(named{}, rented, cfg("a/b", "key", "1", "project", "")); a == "" {
		t.Error("without a name, the credential does not count")
	}
}

// nothing is a place that finds nothing.
type nothing struct {
	extensions.Backend
	torn bool
}

func (nothing) Find(context.Context, extensions.ID) (extensions.Handle, error) {
	return extensions.Handle{}, extensions.Errorf(extensions.KindIndeterminate, "not listed")
}

func (nothing) Status(_ context.Context, hs []extensions.Handle) ([]extensions.Observation, error) {
	return []extensions.Observation{{ID: hs[0].ID, Phase: extensions.PhaseAbsent}}, nil
}

func (b *nothing) Teardown(context.Context, extensions.Handle) (extensions.CleanupReport, error) {
	b.torn = true
	return extensions.CleanupReport{AlreadyGone: true}, nil
}

// What nobody lists past its deadline is gone, unless another credential made it.
func TestAnotherIdentityProvesNothingAbsent(t *testing.T) {
	t.Parallel()
	places := New(Options{Catalog: &catalog.Catalog{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	place := &nothing{}
	o := &opened{backend: place, places: places, identity: "me", Binding: catalog.Binding{ID: "ext.x", Descriptor: extensions.Descriptor{
		Find: extensions.Find{Strength: extensions.FindEventual, Settle: time.Millisecond}},
		Capabilities: extensions.Capabilities{Expiry: extensions.ExpiryNative}}}
	const id = "sbx-aaaaaaaaaaaaaaaaaaaa"
	h := extensions.Handle{Extension: "x", Version: 1, ID: id, Ref: "r"}
	for _, made := range []string{"", "me", "you"} {
		b := o.to(made)
		_, found := b.FindSettled(t.Context(), id, time.Now().Add(-time.Hour))
		seen, looked := b.Look(t.Context(), h)
		report, ended := b.Teardown(t.Context(), h)
		if made != "you" {
			if !extensions.IsKind(found, extensions.KindNotFound) || looked != nil || seen.Phase != extensions.PhaseAbsent || ended != nil ||
				!report.AlreadyGone {
				t.Errorf("made by %q: %v, %+v %v, %+v %v", made, found, seen, looked, report, ended)
			}
			place.torn = false
			continue
		}
		for what, err := range map[string]error{"find": found, "look": looked, "teardown": ended} {
			if !errors.Is(err, extensions.ErrElsewhere) || !extensions.IsKind(err, extensions.KindUnreachable) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if place.torn {
			t.Error("it was torn down unseen")
		}
	}
}
