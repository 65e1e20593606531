package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A ledger that answers no more is told of, and is not an empty one.
func TestAPlanTellsOfAServerThatIsGone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	o := newOffice(t, "")
	e := o.client(t.TempDir(), "acme/web", o.token("acme/web"))
	unread := func(n engine.Notice) bool { return n.Summary == "The ledger cannot be read" }
	if p, err := e.Plan(ctx, own); err != nil || slices.ContainsFunc(p.Notices, unread) {
		t.Fatalf("%+v, %v", p.Notices, err)
	}
	o.stop()
	for _, e := range []*engine.Engine{e, o.client(t.TempDir(), "acme/web", o.token("acme/web"))} { // that read it before, and that did not
		p, err := e.Plan(ctx, own)
		if err != nil || !slices.ContainsFunc(p.Notices, unread) {
			t.Errorf("%+v, %v", p.Notices, err)
		}
		if v, err := e.AccountView(ctx); !extensions.IsKind(err, extensions.KindUnavailable) {
			t.Errorf("an account as if it had nothing: %+v, %v", v, err)
		}
	}
}

// A token of another account is told of before anything is made.
func TestAPlanTellsWhoseTheTokenIs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	o := newOffice(t, "")
	for token, accounts := range map[string]map[string]bool{
		"acme/web": {"acme/web": true, "acme/other": false, "other/web": false, "acme2/web": false},
		"acme":     {"acme/web": true, "acme/other": true, "other/web": false, "acme2/web": false},
	} {
		secret := o.token(token)
		for account, fits := range accounts {
			e := o.client(t.TempDir(), account, secret)
			p, err := e.Plan(ctx, own)
			told := slices.ContainsFunc(p.Notices, func(n engine.Notice) bool {
				return strings.Contains(n.Detail, "is for the account "+token+", not for \""+account+"\"") && strings.Contains(n.Detail, "set account to ")
			})
			if err != nil || told == fits {
				t.Errorf("%s with a token of %s: %+v, %v", account, token, p.Notices, err)
			}
			_, err = e.List(ctx, false)
			if fits != (err == nil) || !fits && !extensions.IsKind(err, extensions.KindUnauthorized) {
				t.Errorf("%s with a token of %s lists: %v", account, token, err)
			}
		}
	}
}
