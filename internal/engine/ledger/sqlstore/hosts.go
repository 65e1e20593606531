package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (s *store) PutHost(ctx context.Context, h ledger.Host) (ledger.Host, error) {
	for _, r := range []struct{ name, value string }{{"account", h.Account}, {"host name", h.Name}} {
		if err := errors.Join(plain(r.name, r.value), short(r.name, r.value, maxName)); err != nil {
			return h, err
		}
	}
	replaces := h.Replaces
	h.Replaces, h.Existed = nil, false
	err := s.write(ctx, func(t *tx) error {
		old, err := t.host(h.Account, h.Name)
		if err != nil {
			return err
		}
		if old != nil && replaces != nil && old.Ref != h.Ref && !slices.Contains(replaces, old.Ref) {
			return fault.Errorf(extensions.KindConflict, "host %q of account %s is registered with other arguments", h.Name, h.Account)
		}
		h.UpdatedAt = t.now
		if old == nil {
			h.CreatedAt = t.now
			err := t.insert("ledger.host", "hosts", hostRow(&h))
			if t.dialect.unique(err) { // another run registered it between read and write, again and again
				err = fault.Errorf(extensions.KindConflict, "another run registers host %q of account %s now", h.Name, h.Account).
					WithRemedy("run again")
			}
			if err != nil {
				return err
			}
			return t.hostEvent("host.registered", h, &ledger.Host{}, hostRow(&h))
		}
		h.CreatedAt, h.Existed = old.CreatedAt, true
		same := *old
		same.UpdatedAt = h.UpdatedAt
		diff, err := changed(hostRow(&same), hostRow(&h))
		if err != nil {
			return fault.New(extensions.KindInvalid, "", err)
		}
		if len(diff) == 0 {
			h = *old
			h.Existed = true
			return nil
		}
		if err := t.update("ledger.host", "hosts", hostRow(&h), "account = ? AND name = ?", h.Account, h.Name); err != nil {
			return err
		}
		return t.hostEvent("host.changed", h, old, hostRow(&h))
	})
	return h, err
}

func (t *tx) hostEvent(kind string, h ledger.Host, before *ledger.Host, after []field) error {
	set, err := changed(hostRow(before), after)
	if err != nil {
		return fault.New(extensions.KindInvalid, "", err)
	}
	return t.append(fact{account: h.Account, kind: kind, subject: h.Name, data: chain.Data{Row: "hosts", Set: set}})
}

func (t *tx) host(account, name string) (*ledger.Host, error) {
	rows, err := selectAll(t.ctx, t.store, t.sql, "hosts", hostRow, "WHERE account = ? AND name = ?"+t.dialect.forUpdate, account, name)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

func (s *store) DeleteHost(ctx context.Context, account, name string) error {
	return s.write(ctx, func(t *tx) error {
		old, err := t.host(account, name)
		if err != nil || old == nil {
			return err
		}
		if _, err := t.exec("ledger.host", "DELETE FROM hosts WHERE account = ? AND name = ?", account, name); err != nil {
			return err
		}
		t.removed("hosts", map[string]any{"account": account, "name": name})
		if err := t.dropFacts(account, name); err != nil {
			return err
		}
		return t.append(fact{account: account, kind: "host.removed", subject: name,
			data: chain.Data{Row: "hosts", Deleted: true, Set: map[string]json.RawMessage{}}})
	})
}
