// Package tenant is a ledger as one account may see and change it, where the
// account is a cooperative client and the ledger is somebody else's: it sees
// its own rows, its prices are the ledger's owner's, its times lie within the
// owner's clock, it sends quantities and no amounts, and what was set aside is
// given back only where the owner can tell that nothing was used.
package tenant

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Options say whose view it is.
type Options struct {
	// Account is org/workspace, or an org for all of its workspaces.
	Account string
	// Owns reports a holder that the account has.
	Owns func(ledger.HolderID) bool
	// Pricer tells what places cost by the owner's catalog.
	Pricer Pricer
	// Permit tells whether the owner's rules let the account use a place; its
	// error is the refusal. nil = any place of the catalog.
	Permit func(ctx context.Context, account string, a Asked) error
	// Ceilings are those of the owner's policies, beside the client's own; nil = none.
	Ceilings func(account string, metered bool) []ledger.Ceiling
	// Now is the owner's clock; nil = time.Now.
	Now func() time.Time
	// Window is how long after its begin a create that left no handle may
	// still be said to have made nothing: the lease, the longest call and the
	// time a place needs to show what it has; 0 = an hour.
	Window time.Duration
	// Grace is how much later than its deadline a place is sure to have ended
	// what it ends by itself; 0 = 10 minutes.
	Grace time.Duration
}

// Pricer tells what the owner's catalog says of a place.
type Pricer interface {
	// Price is pure, but for the catalog. A place the catalog has not is KindInvalid.
	Price(Asked) (Price, error)
}

// Asked is a place, and what is asked for there.
type Asked struct {
	Extension string          // binding id
	Host      string          // its name; "" for an account of a vendor
	HostRef   string          // "" where there is no host, or none but its name is known
	Spec      json.RawMessage // resolved: its resources count
	Request   json.RawMessage // as asked for: who pays counts
	TTL       time.Duration
	Head      time.Duration // of the TTL, how much was over when it was metered
	// Rates apply instead of the catalog's, where they are fixed already.
	Rates json.RawMessage
	// Less: only what an end that is settled does not need is to be released.
	Less bool
}

// Price is the answer.
type Price struct {
	// Metered: somebody sends a bill. All else is the client's own place, whose
	// cost is a memo and the client's to tell.
	Metered bool
	// Native: the place ends what it has at its deadline by itself.
	Native bool
	// MaxSandboxes bounds how many of one account may live there at once, as
	// the owner says; nil = any number.
	MaxSandboxes *int64
	// Quote has Rates as its only prices, if they are known.
	Quote    ledger.Quote
	Rates    json.RawMessage // a meter.PriceSnapshot
	Currency string
	Sizes    map[string]int64
	// Reserve is the worst case at the TTL, in all.
	Reserve ledger.Reserve
}

// view implements ledger.Ledger. It embeds nothing, so that an operation that
// is new is refused by the compiler until it is decided here.
type view struct {
	base ledger.Ledger
	Options
	org string
}

// View is the ledger as the options say.
func View(base ledger.Ledger, o Options) ledger.Ledger {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Window, o.Grace = cmp.Or(o.Window, time.Hour), cmp.Or(o.Grace, 10*time.Minute)
	return &view{base, o, ledger.StreamOf(o.Account)}
}

func (v *view) now() time.Time { return v.Now().UTC().Truncate(time.Microsecond) }

// mine reports an account of sandboxes that is in scope.
func (v *view) mine(account string) bool {
	return account == v.Account && strings.Contains(account, "/") || v.Account == v.org && strings.HasPrefix(account, v.org+"/")
}

// shared reports what all workspaces of the org may see, or what is in scope.
func (v *view) shared(account string) bool { return account == v.org || v.mine(account) }

// narrow is the account to list by, if there is anything in scope.
func (v *view) narrow(account string) (string, bool) {
	if account == "" || account == v.org {
		return v.Account, true
	}
	return account, v.mine(account)
}

func failure(kind extensions.Kind, format string, args ...any) *extensions.Error {
	return &extensions.Error{Kind: kind, Op: "ledger", Err: fmt.Errorf(format, args...)}
}

// missing is what another account's is: it is not there.
func missing(what, id string) error {
	return failure(extensions.KindNotFound, "the ledger has no %s %q", what, id)
}

func (v *view) notYours(account string) error {
	return failure(extensions.KindUnauthorized, "the token is for the account %s, not for %q", v.Account, extensions.Clean(account, 130)).
		WithRemedy("set account to %s, or use a token of the other account", ledger.ScopeOf(v.Account))
}

// owners refuses what only the ledger's owner does.
func (v *view) owners(what string) error {
	return failure(extensions.KindUnauthorized, "a token cannot %s", what).
		WithRemedy("have it done where the ledger is: sandboxer --ledger with the address that is served")
}

// ID implements ledger.Ledger.
func (v *view) ID() string { return v.base.ID() }

// URL implements ledger.Ledger.
func (v *view) URL() string { return v.base.URL() }

// Holder implements ledger.Ledger; clients hold leases of the server's.
func (v *view) Holder(context.Context) (ledger.HolderID, error) {
	return "", v.owners("be a holder by itself")
}

// Guard implements ledger.Ledger; clients guard their own leases.
func (v *view) Guard(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// Close implements ledger.Ledger: the ledger stays open.
func (v *view) Close() error { return nil }
