package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (s *store) Begin(ctx context.Context, b ledger.Begin) (ledger.Sandbox, error) {
	if err := checkBegin(b); err != nil {
		return ledger.Sandbox{}, err
	}
	var row ledger.Sandbox
	err := s.write(ctx, func(t *tx) error {
		if err := t.queue(b.Account); err != nil {
			return err
		}
		subject, done, err := t.replayed(b.Key)
		if err != nil {
			return err
		}
		if done {
			row, err = t.recorded(extensions.ID(subject))
			return err
		}
		row, err = t.begin(b)
		return err
	})
	return row, err
}

func checkBegin(b ledger.Begin) error {
	if _, err := extensions.ParseID(string(b.ID)); err != nil {
		return err
	}
	if err := errors.Join(plain("account", b.Account), plain("name", b.Name), plain("key", b.Key),
		plain("holder", string(b.Holder))); err != nil {
		return err
	}
	if ledger.StreamOf(b.Account) == "" {
		return fault.Errorf(extensions.KindInvalid, "account %q has no org", b.Account).WithRemedy("write it as org/workspace")
	}
	return nil
}

func (t *tx) begin(b ledger.Begin) (ledger.Sandbox, error) {
	row := ledger.Sandbox{
		ID: b.ID, Account: b.Account, Name: b.Name, ClaimsName: true,
		State: lifecycle.Requested, Mode: ledger.Running, Generation: 1, Fence: 1,
		Profile: b.Profile, ProfileVersion: b.ProfileVersion, SpecHash: b.SpecHash,
		Request: b.Request, Spec: b.Spec, Route: b.Route,
		Extension: b.Extension, Host: b.Host, HostRef: b.HostRef,
		TTL: b.TTL, MaxTTL: b.MaxTTL, CreatedAt: cmp.Or(b.CreatedAt, t.now), ExpiresAt: b.ExpiresAt, UpdatedAt: t.now,
	}
	err := indexed(row)
	if err != nil {
		return row, err
	}
	if row.QuoteDigest, err = t.quote(b.Quote); err != nil {
		return row, err
	}
	if err := t.nameFree(row); err != nil {
		return row, err
	}
	if err := t.ceilings(row, b.Ceilings, b.Reserve, true); err != nil {
		return row, err
	}
	books, err := t.books(row, b.Reserve != nil)
	if err != nil {
		return row, err
	}
	funds, err := t.turn(&row, books, bank.Turn{Key: b.Key, Reserve: b.Reserve})
	if err != nil {
		return row, err
	}
	if err := t.insert("ledger.sandbox", "sandboxes", sandboxRow(&row)); err != nil {
		if t.dialect.unique(err) {
			return row, fault.New(extensions.KindConflict, string(b.ID), fmt.Errorf("this id is in the ledger already"))
		}
		return row, err
	}
	if err := t.lease(b.ID, b.Lease); err != nil {
		return row, err
	}
	intent := ledger.Intent{Key: b.Key, Kind: ledger.IntentCreate, Subject: string(b.ID), Account: b.Account, State: ledger.Dispatched,
		Holder: b.Holder, Fence: row.Fence, Generation: row.Generation, StartedAt: t.now, Metered: b.Metered}
	if err := t.insert("ledger.intent.open", "intents", intentRow(&intent)); err != nil {
		return row, t.clash(err, b.Key)
	}
	set, err := changed(sandboxRow(&ledger.Sandbox{}), sandboxRow(&row))
	if err != nil {
		return row, fault.New(extensions.KindInvalid, string(b.ID), err)
	}
	err = t.append(fact{
		account: b.Account, kind: b.Event.Typed("sandbox.requested"), subject: string(b.ID), operation: b.Key,
		data: chain.Data{Row: "sandboxes", State: string(row.State), Generation: row.Generation, Set: set, Opened: intentTold(intent),
			Funds: funds, Note: b.Event.Data},
	})
	if err != nil {
		return row, err
	}
	return t.sandbox(b.ID) // as stored: canonical, in microseconds
}

// nameFree fails with NameTaken if another sandbox claims row's name. The unique index is the guard; this
// names the holder.
func (t *tx) nameFree(row ledger.Sandbox) error {
	rows, err := selectAll(t.ctx, t.store, t.sql, "sandboxes", sandboxRow,
		"WHERE account = ? AND claim = ? AND id <> ?", row.Account, row.Name, string(row.ID))
	if err != nil || len(rows) == 0 {
		return err
	}
	e := fault.New(extensions.KindConflict, "", &ledger.NameTaken{Existing: rows[0]})
	return e.WithRemedy("choose another name, destroy %s, or import it", rows[0].ID)
}

func (t *tx) sandbox(id extensions.ID) (ledger.Sandbox, error) {
	rows, err := selectAll(t.ctx, t.store, t.sql, "sandboxes", sandboxRow, "WHERE id = ?"+t.dialect.forUpdate, string(id))
	return one(rows, err, "sandbox", string(id))
}

// recorded reads a sandbox without locking it. It must run before the stream is locked: whoever holds the
// row may be waiting for the stream.
func (t *tx) recorded(id extensions.ID) (ledger.Sandbox, error) {
	rows, err := selectAll(t.ctx, t.store, t.sql, "sandboxes", sandboxRow, "WHERE id = ?", string(id))
	return one(rows, err, "sandbox", string(id))
}

// quote stores a quote and its prices under their digests.
func (t *tx) quote(q *ledger.Quote) (string, error) {
	if q == nil {
		return "", nil
	}
	sums, books := []string{}, []ledger.PriceBook{}
	for _, p := range q.Prices {
		body, err := chain.Canonical(p.Body)
		if err != nil {
			return "", fault.Errorf(extensions.KindInvalid, "price book %s: %w", p.Source, err)
		}
		p.Body, p.SHA256 = body, chain.SHA256(body)
		sums = append(sums, p.SHA256)
		books = append(books, p)
	}
	// All orgs share price books; a fixed order keeps two transactions from deadlocking.
	slices.SortFunc(books, func(x, y ledger.PriceBook) int { return cmp.Compare(x.SHA256, y.SHA256) })
	for _, p := range books {
		if err := t.insertOnce("ledger.price", "price_books", priceBookRow(&p)); err != nil {
			return "", err
		}
	}
	body, err := chain.Canonical(q.Body)
	if err != nil || body == nil {
		return "", fault.Errorf(extensions.KindInvalid, "the quote has no body that is JSON: %w", err)
	}
	prices, err := json.Marshal(sums)
	if err != nil {
		return "", fault.New(extensions.KindInternal, "", err)
	}
	stored := ledger.Quote{Digest: chain.SHA256(body), Body: body, CreatedAt: t.now}
	return stored.Digest, t.insertOnce("ledger.quote", "quotes", quoteRow(&stored, (*json.RawMessage)(&prices)))
}
