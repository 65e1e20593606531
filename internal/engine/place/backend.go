package place

import (
	"context"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Backend is one opened place. Each method is one call, with the deadline and retries of its kind; its errors are
// *extensions.Error without secrets.
type Backend struct {
	*opened
	// stranger says that another identity than the credential's made what is looked for: that it is not found proves nothing.
	stranger bool
}

// opened is one place with its last listing.
type opened struct {
	Binding catalog.Binding

	places   *Places
	at       Address
	identity string // of the credential; see Address
	backend  extensions.Backend

	mu     sync.Mutex
	epoch  int64 // raised by each of our changes
	look   map[extensions.ID]extensions.Observation
	lookAt time.Time
}

func (b *Backend) call(ctx context.Context, c call, f func(context.Context) error) error {
	c.binding, c.place = b.Binding.ID, b.at.key()
	err := b.places.invoke(ctx, c, f)
	if c.inside {
		return err
	}
	return b.unlessStranger(c.op, c.id, err)
}

// change is call for a change of the place: it drops the listing.
func (b *Backend) change(ctx context.Context, c call, f func(context.Context) error) error {
	defer b.changed()
	return b.call(ctx, c, f)
}

// Classify makes err an error of op on one sandbox of the place, without its secrets.
func (b *Backend) Classify(op string, id extensions.ID, err error) error {
	return b.places.classify(call{op: op, binding: b.Binding.ID, id: id}, err)
}

// Provision asks for a sandbox. It calls asks before every attempt, which may give it another deadline, and answered
// with every answer, even of failed attempts, before the next call; their errors become the attempt's.
func (b *Backend) Provision(ctx context.Context, spec extensions.Spec, asks func(context.Context, *extensions.Spec) error,
	answered func(context.Context, extensions.Handle, extensions.Observation, error) error) (obs extensions.Observation, err error) {
	c := call{op: "provision", id: spec.ID, timeout: timeoutProvision, patience: patienceChange}
	err = b.call(ctx, c, func(ctx context.Context) error {
		if err := asks(ctx, &spec); err != nil {
			return err
		}
		h, o, err := b.backend.Provision(ctx, spec)
		b.changed()
		obs = o
		return answered(ctx, h, o, err)
	})
	return obs, err
}

// WaitReady waits until a provisioned sandbox is ready.
func (b *Backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (obs extensions.Observation, err error) {
	c := call{op: "wait-ready", id: spec.ID, timeout: timeoutReady, patience: patiencePoll, repeatable: true}
	err = b.change(ctx, c, func(ctx context.Context) (err error) {
		obs, err = b.backend.WaitReady(ctx, spec, h)
		return err
	})
	return obs, err
}

// Teardown ends one sandbox. An absent one is success.
func (b *Backend) Teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	if b.stranger { // one that is not seen first is not gone
		if _, err := b.Look(ctx, h); err != nil {
			return report, err
		}
	}
	c := call{op: "teardown", id: h.ID, timeout: timeoutTeardown, patience: patienceChange}
	err = b.change(ctx, c, func(ctx context.Context) (err error) {
		report, err = b.backend.Teardown(ctx, h)
		return err
	})
	if extensions.IsKind(err, extensions.KindNotFound) {
		return extensions.CleanupReport{AlreadyGone: true}, nil
	}
	return report, err
}

// Find looks up a sandbox by id alone, once.
func (b *Backend) Find(ctx context.Context, id extensions.ID) (h extensions.Handle, err error) {
	err = b.call(ctx, call{op: "find", id: id, timeout: timeoutLook, patience: patienceLook}, func(ctx context.Context) (err error) {
		h, err = b.backend.Find(ctx, id)
		return err
	})
	return h, err
}

// busyLimit limits the wait for work on a sandbox at its place, such as a script that outlived the run that started
// it.
const busyLimit = 5 * time.Minute

// FindSettled looks up a sandbox by ID. While absence proves nothing yet, it repeats until the place's settle time is
// over; then absence counts only after the native deadline sent at create.
func (b *Backend) FindSettled(ctx context.Context, id extensions.ID, deadline time.Time) (extensions.Handle, error) {
	find := b.Binding.Descriptor.Find
	start := time.Now()
	for {
		h, err := b.Find(ctx, id)
		if pause := busy(err); pause > 0 && time.Since(start) < busyLimit && flight.Sleep(ctx, pause) == nil {
			continue
		}
		if err == nil || find.Strength == extensions.FindStrong || !extensions.IsKind(err, extensions.KindIndeterminate) {
			return h, err
		}
		settled := find.Strength == extensions.FindEventual && time.Since(start) >= find.Settle
		native := b.Binding.Capabilities.Expiry == extensions.ExpiryNative
		if settled && native && b.places.Now().After(deadline.Add(find.Settle)) {
			err = extensions.Errorf(extensions.KindNotFound, "not found within %s, and past its native deadline", find.Settle)
			return h, b.unlessStranger("find", id, err)
		}
		if find.Strength == extensions.FindNone || settled || flight.Sleep(ctx, find.Settle/8) != nil {
			return h, err
		}
	}
}

// busy returns the wait before the next look if Find found the sandbox busy; zero for every other outcome.
func busy(err error) time.Duration {
	if !extensions.IsKind(err, extensions.KindConflict) {
		return 0
	}
	return retryAfter(err)
}
