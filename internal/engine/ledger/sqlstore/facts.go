package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const atPlace = "account = ? AND extension = ? AND host = ?"

func (s *store) PutFacts(ctx context.Context, all ...ledger.Facts) error {
	for _, f := range all {
		if f.Account != all[0].Account {
			return fault.Errorf(extensions.KindInvalid, "facts of the accounts %s and %s at once", all[0].Account, f.Account)
		}
		for _, r := range []struct{ name, value string }{{"account", f.Account}, {"extension", f.Extension}, {"place", placeName(f)}} {
			if err := errors.Join(plain(r.name, r.value), short(r.name, r.value, 2*maxName)); err != nil {
				return err
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return s.write(ctx, func(t *tx) error {
		if err := t.queue(all[0].Account); err != nil {
			return err
		}
		told, subject := map[string]extensions.Facts{}, ""
		for i := range all {
			fresh, err := t.putFacts(&all[i])
			if err != nil {
				return err
			}
			if fresh {
				subject = cmp.Or(subject, placeName(all[i]))
				told[placeName(all[i])] = all[i].Found
			}
		}
		if len(told) == 0 {
			return nil
		}
		note, err := json.Marshal(map[string]any{"found": told})
		if err != nil {
			return fault.New(extensions.KindInvalid, "", err)
		}
		return t.append(fact{account: all[0].Account, kind: "place.probed", subject: subject, data: chain.Data{Note: note}})
	})
}

func placeName(f ledger.Facts) string {
	if f.Host == "" {
		return f.Extension
	}
	return f.Extension + "@" + f.Host
}

// putFacts reports whether f is new.
func (t *tx) putFacts(f *ledger.Facts) (bool, error) {
	there, err := selectAll(t.ctx, t.store, t.sql, "facts", factsRow, "WHERE "+atPlace, f.Account, f.Extension, f.Host)
	switch {
	case err != nil:
		return false, err
	case len(there) == 0:
		return true, t.insert("ledger.facts", "facts", factsRow(f))
	}
	diff, err := changed(factsRow(&there[0]), factsRow(f))
	if err != nil {
		return false, fault.New(extensions.KindInvalid, "", err)
	}
	if len(diff) == 0 {
		return false, nil
	}
	return true, t.update("ledger.facts", "facts", factsRow(f), atPlace, f.Account, f.Extension, f.Host)
}

// dropFacts removes the facts of every place on a host; the event of the host's end tells of it.
func (t *tx) dropFacts(account, host string) error {
	const onHost = "account = ? AND host = ?"
	gone, err := selectAll(t.ctx, t.store, t.sql, "facts", factsRow, "WHERE "+onHost, account, host)
	if err != nil || len(gone) == 0 {
		return err
	}
	if _, err := t.exec("ledger.facts", "DELETE FROM facts WHERE "+onHost, account, host); err != nil {
		return err
	}
	for _, f := range gone {
		t.removed("facts", map[string]any{"account": f.Account, "extension": f.Extension, "host": f.Host})
	}
	return nil
}

func (s *store) Facts(ctx context.Context, account, extension, host string) (ledger.Facts, error) {
	rows, err := readAll(ctx, s, "facts", factsRow, "WHERE "+atPlace, account, extension, host)
	return one(rows, err, "facts of", placeName(ledger.Facts{Extension: extension, Host: host}))
}
