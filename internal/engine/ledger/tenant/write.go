package tenant

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Grant implements ledger.Ledger.
func (v *view) Grant(context.Context, ledger.Grant) (ledger.Balance, error) {
	return ledger.Balance{}, v.owners("grant credit")
}

// PutBudget implements ledger.Ledger.
func (v *view) PutBudget(context.Context, ledger.Budget) (ledger.Budget, error) {
	return ledger.Budget{}, v.owners("set budgets")
}

// PutHost implements ledger.Ledger.
func (v *view) PutHost(ctx context.Context, h ledger.Host) (ledger.Host, error) {
	if !v.mine(h.Account) {
		return ledger.Host{}, v.notYours(h.Account)
	}
	return v.base.PutHost(ctx, h)
}

// DeleteHost implements ledger.Ledger.
func (v *view) DeleteHost(ctx context.Context, account, name string) error {
	if !v.mine(account) {
		return v.notYours(account)
	}
	return v.base.DeleteHost(ctx, account, name)
}

// holds refuses to act for a holder that the account has not.
func (v *view) holds(id ledger.HolderID) error {
	if v.Owns(id) {
		return nil
	}
	return failure(extensions.KindUnauthorized, "the holder %q is not one of %s", extensions.Clean(string(id), 100), v.Account)
}

func (v *view) begins(in *ledger.OpenIntent) error {
	if in == nil {
		return nil
	}
	return v.holds(in.Holder)
}

// Begin implements ledger.Ledger.
func (v *view) Begin(ctx context.Context, b ledger.Begin) (ledger.Sandbox, error) {
	if err := v.mayBegin(b); err != nil {
		return ledger.Sandbox{}, err
	}
	v.boundBegin(&b)
	if err := v.priceBegin(ctx, &b); err != nil {
		return v.doneBefore(ctx, b.ID, b.Key, err)
	}
	b.Ceilings = v.withCeilings(b.Account, b.Metered, b.Ceilings)
	return v.own(b.ID)(v.base.Begin(ctx, b))
}

func (v *view) mayBegin(b ledger.Begin) error {
	if !v.mine(b.Account) {
		return v.notYours(b.Account)
	}
	if err := v.holds(b.Holder); err != nil {
		return err
	}
	return errors.Join(keyed(string(b.ID), b.Key), v.ceilings(b.Ceilings), notes("sandbox", b.Event))
}

// keyed refuses operation keys that do not name what they are of. All accounts
// and the owner share one name space: such a key is nobody else's.
func keyed(id string, keys ...string) error {
	for _, key := range keys {
		if !slices.Contains(strings.Split(key, "/"), id) {
			return failure(extensions.KindInvalid, "the operation key %q does not name %s", extensions.Clean(key, 200), id).
				WithRemedy("use a client of this program")
		}
	}
	return nil
}

// keysOf are those of a change, and of the intent that it opens.
func keysOf(key string, in *ledger.OpenIntent) []string {
	if in == nil || in.Key == "" {
		return []string{key}
	}
	return []string{key, in.Key}
}

// mayApply refuses what no client may say.
func (v *view) mayApply(c ledger.Change) error {
	return errors.Join(keyed(string(c.ID), keysOf(c.Key, c.Intent)...), v.begins(c.Intent), v.ceilings(c.Ceilings), notes("sandbox", c.Event))
}

// notes refuses events that tell of something else than the client's own things.
func notes(of string, n ledger.Note) error {
	if n.Type == "" || strings.HasPrefix(n.Type, of+".") {
		return nil
	}
	return failure(extensions.KindInvalid, "a client tells of a %s, not of %q", of, extensions.Clean(n.Type, 80))
}

// withCeilings adds the owner's.
func (v *view) withCeilings(account string, metered bool, own []ledger.Ceiling) []ledger.Ceiling {
	if v.Ceilings == nil {
		return own
	}
	return slices.Concat(v.Ceilings(account, metered), own)
}

// ceilings refuses those that would count what others do.
func (v *view) ceilings(all []ledger.Ceiling) error {
	for _, c := range all {
		if !v.shared(c.Scope) {
			return v.notYours(c.Scope)
		}
	}
	return nil
}

// own keeps what belongs to another account, which had the key first, to itself.
func (v *view) own(id extensions.ID) func(ledger.Sandbox, error) (ledger.Sandbox, error) {
	return func(s ledger.Sandbox, err error) (ledger.Sandbox, error) {
		if err == nil && (s.ID != id || !v.mine(s.Account)) {
			return ledger.Sandbox{}, failure(extensions.KindConflict, "the operation key is used already")
		}
		return s, err
	}
}

// doneBefore is what the key did, if it did anything; else the refusal.
func (v *view) doneBefore(ctx context.Context, id extensions.ID, key string, refusal error) (ledger.Sandbox, error) {
	s, err := v.base.Apply(ctx, ledger.Change{ID: id, Key: key, Expect: ledger.Expect{Fence: -1}})
	if err != nil || !v.mine(s.Account) {
		return ledger.Sandbox{}, refusal
	}
	return s, nil
}

// attempts bounds how often a change is worked out anew because the row was
// changed by somebody else meanwhile.
const attempts = 5

// Apply implements ledger.Ledger.
func (v *view) Apply(ctx context.Context, c ledger.Change) (ledger.Sandbox, error) {
	if err := v.mayApply(c); err != nil {
		return ledger.Sandbox{}, err
	}
	for n := 1; ; n++ {
		row, err := v.Get(ctx, c.ID)
		if err != nil {
			return ledger.Sandbox{}, err
		}
		changes, err := v.bound(ctx, row, c)
		if err != nil {
			return v.doneBefore(ctx, c.ID, c.Key, err)
		}
		if len(changes) > 1 {
			if s, err := v.doneBefore(ctx, c.ID, c.Key, errNotDone); err == nil {
				return s, nil
			}
		}
		var s ledger.Sandbox
		if len(changes) == 1 {
			s, err = v.base.Apply(ctx, changes[0])
		} else {
			s, err = v.base.Replay(ctx, nil, changes...)
		}
		var stale *ledger.Stale
		if errors.As(err, &stale) && stale.Why == ledger.ChangedMeanwhile && n < attempts {
			continue
		}
		return v.own(c.ID)(s, err)
	}
}

var errNotDone = errors.New("not done before")

// BeginSnapshot implements ledger.Ledger.
func (v *view) BeginSnapshot(ctx context.Context, b ledger.BeginSnapshot) (ledger.Snapshot, error) {
	if !v.mine(b.Account) {
		return ledger.Snapshot{}, v.notYours(b.Account)
	}
	if err := errors.Join(keyed(b.ID, b.Key), v.holds(b.Holder), notes("snapshot", b.Event)); err != nil {
		return ledger.Snapshot{}, err
	}
	of, err := v.Get(ctx, b.SandboxID)
	if err != nil {
		return ledger.Snapshot{}, err
	}
	if of.Account != b.Account {
		return ledger.Snapshot{}, v.notYours(b.Account)
	}
	b.CreatedAt = v.moment(b.CreatedAt)
	s, err := v.base.BeginSnapshot(ctx, b)
	if err == nil && (s.ID != b.ID || !v.mine(s.Account)) {
		return ledger.Snapshot{}, failure(extensions.KindConflict, "the operation key is used already")
	}
	return s, err
}

// ApplySnapshot implements ledger.Ledger.
func (v *view) ApplySnapshot(ctx context.Context, c ledger.SnapshotChange) (ledger.Snapshot, error) {
	if _, err := v.GetSnapshot(ctx, c.ID); err != nil {
		return ledger.Snapshot{}, err
	}
	if err := errors.Join(keyed(c.ID, keysOf(c.Key, c.Intent)...), v.begins(c.Intent), notes("snapshot", c.Event)); err != nil {
		return ledger.Snapshot{}, err
	}
	if c.Patch.EndedAt != nil {
		at := notAfter(*c.Patch.EndedAt, v.now())
		c.Patch.EndedAt = &at
	}
	return v.base.ApplySnapshot(ctx, c)
}
