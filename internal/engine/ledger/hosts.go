package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (s *store) PutHost(ctx context.Context, h Host) (Host, error) {
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
			return failuref(extensions.KindConflict, "host %q of account %s is registered with other arguments", h.Name, h.Account)
		}
		h.UpdatedAt = t.now
		if old == nil {
			h.CreatedAt = t.now
			if err := t.insert("ledger.host", "hosts", h.fields()); err != nil {
				return err
			}
			return t.hostEvent("host.registered", h, &Host{}, h.fields())
		}
		h.CreatedAt, h.Existed = old.CreatedAt, true
		same := *old
		same.UpdatedAt = h.UpdatedAt
		diff, err := changed(same.fields(), h.fields())
		if err != nil {
			return failure(extensions.KindInvalid, "", err)
		}
		if len(diff) == 0 {
			h = *old
			h.Existed = true
			return nil
		}
		if err := t.update("ledger.host", "hosts", h.fields(), "account = ? AND name = ?", h.Account, h.Name); err != nil {
			return err
		}
		return t.hostEvent("host.changed", h, old, h.fields())
	})
	return h, err
}

func (t *tx) hostEvent(kind string, h Host, before *Host, after []field) error {
	set, err := changed(before.fields(), after)
	if err != nil {
		return failure(extensions.KindInvalid, "", err)
	}
	return t.append(fact{account: h.Account, kind: kind, subject: h.Name, data: factData{Row: "hosts", Set: set}})
}

func (t *tx) host(account, name string) (*Host, error) {
	rows, err := selectAll(t.ctx, t.store, t.sql, "hosts", (*Host).fields, "WHERE account = ? AND name = ?"+t.dialect.forUpdate, account, name)
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
		return t.append(fact{account: account, kind: "host.removed", subject: name,
			data: factData{Row: "hosts", Deleted: true, Set: map[string]json.RawMessage{}}})
	})
}
