package ledger

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (s *store) Replay(ctx context.Context, b *Begin, cs ...Change) (Sandbox, error) {
	id, key, err := checkReplay(b, cs)
	if err != nil {
		return Sandbox{}, err
	}
	var row Sandbox
	err = s.write(ctx, func(t *tx) (err error) {
		if b != nil {
			err = t.queue(b.Account)
		} else if row, err = t.sandbox(id); err == nil {
			err = t.queue(row.Account)
		}
		if err != nil {
			return err
		}
		_, done, err := t.replayed(key)
		if err != nil {
			return err
		}
		if done {
			row, err = t.recorded(id)
			return err
		}
		if b != nil {
			if row, err = t.begin(*b); err != nil {
				return err
			}
		}
		for _, c := range cs {
			if row, err = t.apply(row, c); err != nil {
				return err
			}
		}
		return nil
	})
	return row, err
}

// checkReplay returns whom the steps are about, and the key that tells whether
// they were taken: the first.
func checkReplay(b *Begin, cs []Change) (id extensions.ID, key string, err error) {
	if b != nil {
		if err := b.validate(); err != nil {
			return "", "", err
		}
		id, key = b.ID, b.Key
	} else if len(cs) > 0 {
		id, key = cs[0].ID, cs[0].Key
	}
	for _, c := range cs {
		if err := plain("key of the change", c.Key); err != nil {
			return "", "", err
		}
		if c.ID != id {
			return "", "", failuref(extensions.KindInvalid, "a change of %s is among those of %s", c.ID, id)
		}
	}
	return id, key, plain("key", key)
}
