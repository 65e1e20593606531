package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/httpledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/tenant"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ServeOptions say how a ledger is given out over HTTP.
type ServeOptions struct {
	Listen           string // host:port
	Tokens           string // file; "" = DefaultTokens of the state folder
	Certificate, Key string // PEM files
	// PerSecond bounds the requests of one token; 0 = 100.
	PerSecond float64
	// Ready is told the server's address once it answers.
	Ready func(url string)
	Log   *slog.Logger // nil discards it
}

// settleGrace is how long a place may take to show what it made, or to be done
// with what it ends by itself.
const settleGrace = 5 * time.Minute

// ServeLedger gives out the engine's ledger to the holders of tokens, priced by
// the engine's catalog, until ctx ends.
func (e *Engine) ServeLedger(ctx context.Context, o ServeOptions) error {
	tokens, err := httpledger.OpenTokens(e.tokensFile(o.Tokens))
	if err != nil {
		return err
	}
	l, err := e.writer(ctx)
	if err != nil {
		return err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	view := func(p httpledger.Principal) ledger.Ledger {
		return tenant.View(l, tenant.Options{Account: p.Account, Owns: p.Owns, Pricer: ownersPrices{e}, Ceilings: e.ceilingsOf, Now: e.now,
			Permit: func(ctx context.Context, account string, a tenant.Asked) error {
				return e.permitted(ctx, l, account, a)
			},
			Window: lease.Max + 40*time.Minute + settleGrace, Grace: settleGrace})
	}
	s, err := httpledger.NewServer(httpledger.Config{Ledger: l, Authenticate: tokens.Authenticate, View: view,
		PerSecond: o.PerSecond, Burst: 5 * int(o.PerSecond), Now: e.now, Log: o.Log})
	if err != nil {
		return err
	}
	return httpledger.Serve(ctx, s, httpledger.Listening{Address: o.Listen, Certificate: o.Certificate, Key: o.Key, Ready: o.Ready, Log: o.Log})
}

// LedgerToken is what is known of a token; the token itself is told once.
type LedgerToken struct {
	ID        string
	Account   string
	CreatedAt time.Time
	ExpiresAt time.Time // zero = never
}

func (e *Engine) tokensFile(file string) string {
	if file == "" {
		return filepath.Join(e.stateDir, "ledger-tokens.yaml")
	}
	return file
}

// CreateLedgerToken makes a token for an account, org/workspace or an org, good
// for a ttl, 0 = until it is revoked; file "" is that of the state folder.
func (e *Engine) CreateLedgerToken(file, account string, ttl time.Duration) (Secret, LedgerToken, error) {
	if err := ledger.CheckScope(account); err != nil {
		return Secret{}, LedgerToken{}, err
	}
	text, t, err := httpledger.CreateToken(e.tokensFile(file), account, e.now(), ttl)
	return extensions.NewSecret(text), LedgerToken{t.ID, t.Account, t.CreatedAt, t.ExpiresAt}, err
}

// LedgerTokens lists the tokens of a file.
func (e *Engine) LedgerTokens(file string) ([]LedgerToken, error) {
	all, err := httpledger.ListTokens(e.tokensFile(file))
	out := make([]LedgerToken, 0, len(all))
	for _, t := range all {
		out = append(out, LedgerToken{t.ID, t.Account, t.CreatedAt, t.ExpiresAt})
	}
	return out, err
}

// RevokeLedgerToken removes a token from a file: it is refused from then on.
func (e *Engine) RevokeLedgerToken(file, id string) error {
	return httpledger.RevokeToken(e.tokensFile(file), id)
}

// ownersPrices prices for clients by this engine's catalog.
type ownersPrices struct{ e *Engine }

// Price implements tenant.Pricer.
func (o ownersPrices) Price(a tenant.Asked) (tenant.Price, error) {
	b, err := o.e.catalog.Named(a.Extension)
	if err != nil {
		return tenant.Price{}, err
	}
	out := tenant.Price{Metered: b.Capabilities.PricingModel == extensions.PricingMetered, Native: b.Capabilities.Expiry == extensions.ExpiryNative,
		MaxSandboxes: b.MaxSandboxes}
	if !out.Metered {
		return out, nil
	}
	spec, req, err := wished(a)
	if err != nil {
		return out, err
	}
	q, err := o.e.servedQuote(b, spec, req, a.TTL)
	if err != nil {
		return out, err
	}
	out.Rates, out.Currency, out.Sizes = json.RawMessage(q.Snapshot.Encode()), string(q.Currency), q.Sizes.Map()
	out.Quote = ledger.Quote{Body: mustJSON(q), Prices: priceBooks(q)}
	w := quotedLiability(q, false, cmp.Or(b.Billing, req.Billing), a.TTL)
	if len(a.Rates) > 0 { // fixed before, and paid as it was begun
		w.bill = req.Billing
		if w.prices, err = meter.DecodePriceSnapshot(string(a.Rates)); err != nil {
			return out, err
		}
		w.sizes, w.quoted, w.head, w.quotes = w.prices.Sizes, nil, a.Head, a.Less
		out.Rates, out.Currency, out.Sizes = a.Rates, string(w.prices.Currency), w.sizes.Map()
	}
	r, err := w.reserve(a.TTL)
	if err == nil {
		out.Reserve = *r
	}
	return out, err
}
