package place

import (
	"context"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Backend is one opened place, with the last look at all that it holds. Each
// method is one call, bounded and retried as its kind of call allows; its
// errors are *extensions.Error and hold no secret.
type Backend struct {
	Binding catalog.Binding

	places  *Places
	at      Address
	backend extensions.Backend

	mu     sync.Mutex
	epoch  int64 // raised by every mutation of ours
	look   map[extensions.ID]extensions.Observation
	lookAt time.Time
}

func (b *Backend) call(ctx context.Context, c call, f func(context.Context) error) error {
	c.binding = b.Binding.ID
	return b.places.invoke(ctx, c, f)
}

// change is call for what changes the place: the listing is out of date then.
func (b *Backend) change(ctx context.Context, c call, f func(context.Context) error) error {
	defer b.changed()
	return b.call(ctx, c, f)
}

// Classify makes err an error of op on one sandbox of the place, without the
// secrets that came with it.
func (b *Backend) Classify(op string, id extensions.ID, secrets map[string]extensions.Secret, err error) error {
	return b.places.classify(call{op: op, binding: b.Binding.ID, id: id, secrets: secrets}, err)
}

// Provision asks for a sandbox. answered is called with every answer, those of
// tries that failed too, and before anything else is asked; its error becomes
// the try's.
func (b *Backend) Provision(ctx context.Context, spec extensions.Spec, answered func(context.Context, extensions.Handle, error) error) (obs extensions.Observation, err error) {
	c := call{op: "provision", id: spec.ID, timeout: timeoutProvision, secrets: spec.Secrets}
	err = b.call(ctx, c, func(ctx context.Context) error {
		h, o, err := b.backend.Provision(ctx, spec)
		b.changed()
		obs = o
		return answered(ctx, h, err)
	})
	return obs, err
}

// WaitReady waits until a provisioned sandbox is ready.
func (b *Backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (reach extensions.Reachability, err error) {
	c := call{op: "wait-ready", id: spec.ID, timeout: timeoutReady, secrets: spec.Secrets}
	err = b.change(ctx, c, func(ctx context.Context) (err error) {
		reach, err = b.backend.WaitReady(ctx, spec, h)
		return err
	})
	return reach, err
}

// Teardown ends one sandbox. What is gone already is success.
func (b *Backend) Teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	c := call{op: "teardown", id: h.ID, timeout: timeoutTeardown}
	err = b.change(ctx, c, func(ctx context.Context) (err error) {
		report, err = b.backend.Teardown(ctx, h)
		return err
	})
	if extensions.IsKind(err, extensions.KindNotFound) {
		return extensions.CleanupReport{AlreadyGone: true}, nil
	}
	return report, err
}

// Find looks a sandbox up by id alone, once.
func (b *Backend) Find(ctx context.Context, id extensions.ID) (h extensions.Handle, err error) {
	err = b.call(ctx, call{op: "find", id: id, timeout: timeoutLook}, func(ctx context.Context) (err error) {
		h, err = b.backend.Find(ctx, id)
		return err
	})
	return h, err
}

// busyLimit bounds the wait for what still works on a sandbox at its place,
// such as a script that has outlived the run that started it.
const busyLimit = 5 * time.Minute

// FindSettled looks a sandbox up by id. Where finding nothing proves nothing, it
// is looked for until the place's settle time is over; after that, absence still
// counts only once the native deadline sent at create has passed.
func (b *Backend) FindSettled(ctx context.Context, id extensions.ID, deadline time.Time) (extensions.Handle, error) {
	find := b.Binding.Descriptor.Find
	start := time.Now()
	for {
		h, err := b.Find(ctx, id)
		if pause := busy(err); pause > 0 && time.Since(start) < busyLimit && Sleep(ctx, pause) == nil {
			continue
		}
		if err == nil || find.Strength == extensions.FindStrong || !extensions.IsKind(err, extensions.KindIndeterminate) {
			return h, err
		}
		settled := find.Strength == extensions.FindEventual && time.Since(start) >= find.Settle
		native := b.Binding.Capabilities.Expiry == extensions.ExpiryNative
		if settled && native && b.places.Now().After(deadline.Add(find.Settle)) {
			return h, extensions.Errorf(extensions.KindNotFound, "not found within %s and past its native deadline", find.Settle)
		}
		if find.Strength == extensions.FindNone || settled || Sleep(ctx, find.Settle/8) != nil {
			return h, err
		}
	}
}

// busy tells when to look again, after a Find that found somebody at work;
// zero for every other outcome.
func busy(err error) time.Duration {
	if !extensions.IsKind(err, extensions.KindConflict) {
		return 0
	}
	return retryAfter(err)
}
