package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (s *store) Begin(ctx context.Context, b Begin) (Sandbox, error) {
	if err := b.validate(); err != nil {
		return Sandbox{}, err
	}
	var row Sandbox
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

func (b Begin) validate() error {
	if _, err := extensions.ParseID(string(b.ID)); err != nil {
		return err
	}
	if err := errors.Join(plain("account", b.Account), plain("name", b.Name), plain("key", b.Key), plain("holder", string(b.Holder))); err != nil {
		return err
	}
	if StreamOf(b.Account) == "" {
		return failuref(extensions.KindInvalid, "account %q has no org", b.Account).WithRemedy("write it as org/workspace")
	}
	return nil
}

func (t *tx) begin(b Begin) (Sandbox, error) {
	row := Sandbox{
		ID: b.ID, Account: b.Account, Name: b.Name, ClaimsName: true,
		State: lifecycle.Requested, Mode: Running, Generation: 1, Fence: 1,
		Profile: b.Profile, ProfileVersion: b.ProfileVersion, SpecHash: b.SpecHash,
		Request: b.Request, Spec: b.Spec, Route: b.Route,
		Extension: b.Extension, Host: b.Host, HostRef: b.HostRef,
		TTL: b.TTL, MaxTTL: b.MaxTTL, CreatedAt: b.CreatedAt, ExpiresAt: b.ExpiresAt, UpdatedAt: t.now,
	}
	if row.CreatedAt.IsZero() {
		row.CreatedAt = t.now
	}
	err := row.indexed()
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
	funds, err := t.reserve(&row, b.Key, b.Reserve)
	if err != nil {
		return row, err
	}
	if err := t.insert("ledger.sandbox", "sandboxes", row.fields()); err != nil {
		if t.dialect.unique(err) {
			return row, failure(extensions.KindConflict, string(b.ID), fmt.Errorf("this id is in the ledger already"))
		}
		return row, err
	}
	intent := Intent{Key: b.Key, Kind: IntentCreate, Subject: string(b.ID), Account: b.Account, State: Dispatched,
		Holder: b.Holder, Fence: row.Fence, Generation: row.Generation, StartedAt: t.now, Metered: b.Metered}
	if err := t.insert("ledger.intent.open", "intents", intent.fields()); err != nil {
		return row, t.clash(err, b.Key)
	}
	set, err := changed((&Sandbox{}).fields(), row.fields())
	if err != nil {
		return row, failure(extensions.KindInvalid, string(b.ID), err)
	}
	err = t.append(fact{
		account: b.Account, kind: b.Event.typed("sandbox.requested"), subject: string(b.ID), operation: b.Key,
		data: factData{Row: "sandboxes", State: string(row.State), Generation: row.Generation, Set: set, Opened: intent.fact(), Funds: funds, Note: b.Event.Data},
	})
	if err != nil {
		return row, err
	}
	return t.sandbox(b.ID) // as stored: canonical, in microseconds
}

func (n Note) typed(otherwise string) string {
	if n.Type != "" {
		return n.Type
	}
	return otherwise
}

// nameFree fails with NameTaken if another sandbox claims row's name. The
// unique index is the guard; this finds whom to name.
func (t *tx) nameFree(row Sandbox) error {
	rows, err := selectAll(t.ctx, t.store, t.sql, "sandboxes", (*Sandbox).fields,
		"WHERE account = ? AND claim = ? AND id <> ?", row.Account, row.Name, string(row.ID))
	if err != nil || len(rows) == 0 {
		return err
	}
	e := failure(extensions.KindConflict, "", &NameTaken{Existing: rows[0]})
	return e.WithRemedy("choose another name, destroy %s, or import it", rows[0].ID)
}

func (t *tx) sandbox(id extensions.ID) (Sandbox, error) {
	rows, err := selectAll(t.ctx, t.store, t.sql, "sandboxes", (*Sandbox).fields, "WHERE id = ?"+t.dialect.forUpdate, string(id))
	return one(rows, err, "sandbox", string(id))
}

// recorded reads a sandbox without locking it, which has to come before the
// stream is locked: who has the row may be waiting for the stream.
func (t *tx) recorded(id extensions.ID) (Sandbox, error) {
	rows, err := selectAll(t.ctx, t.store, t.sql, "sandboxes", (*Sandbox).fields, "WHERE id = ?", string(id))
	return one(rows, err, "sandbox", string(id))
}

// quote stores a quote and its prices under their digests.
func (t *tx) quote(q *Quote) (string, error) {
	if q == nil {
		return "", nil
	}
	sums, books := []string{}, []PriceBook{}
	for _, p := range q.Prices {
		body, err := canonical(p.Body)
		if err != nil {
			return "", failuref(extensions.KindInvalid, "price book %s: %w", p.Source, err)
		}
		p.Body, p.SHA256 = body, sha256Hex(body)
		sums = append(sums, p.SHA256)
		books = append(books, p)
	}
	// Books are shared by all orgs: two that store the same ones do it in the same order.
	slices.SortFunc(books, func(x, y PriceBook) int { return cmp.Compare(x.SHA256, y.SHA256) })
	for _, p := range books {
		if err := t.insertOnce("ledger.price", "price_books", p.fields()); err != nil {
			return "", err
		}
	}
	body, err := canonical(q.Body)
	if err != nil || body == nil {
		return "", failuref(extensions.KindInvalid, "the quote has no body that is JSON: %w", err)
	}
	prices, err := json.Marshal(sums)
	if err != nil {
		return "", failure(extensions.KindInternal, "", err)
	}
	stored := Quote{Digest: sha256Hex(body), Body: body, CreatedAt: t.now}
	return stored.Digest, t.insertOnce("ledger.quote", "quotes", stored.fields((*json.RawMessage)(&prices)))
}
