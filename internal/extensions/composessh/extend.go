package composessh

import (
	"context"
	"maps"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/hostlease"
)

// change runs sh/change.sh on a live sandbox.
func (b *Backend) change(ctx context.Context, h extensions.Handle, vars map[string]string) error {
	at, err := b.resolve(h)
	if err != nil {
		return err
	}
	all := map[string]string{"root": at.root, "raise": "", "remaining": "", "until": ""}
	maps.Copy(all, vars)
	_, err = b.call(ctx, operation{id: at.id, files: changeFiles, vars: all})
	return err
}

// Extend implements extensions.Extender with one small write, which the timer's loop reads within five
// seconds.
func (b *Backend) Extend(ctx context.Context, h extensions.Handle, until time.Time) error {
	if until.IsZero() {
		return failed("extend", h.ID, extensions.Errorf(extensions.KindInvalid, "a sandbox on a host needs a deadline"))
	}
	remaining, text := hostlease.Terms(time.Now(), until)
	return failed("extend", h.ID, b.change(ctx, h, map[string]string{"remaining": remaining, "until": text}))
}

// changeFiles make up the operation change.
var changeFiles = []string{"lease", "look", "timer", "take", "hold", "toolbox", "change"}

// SetGeneration implements extensions.GenerationSetter. The containers' labels keep their original
// generation; the record counts.
func (b *Backend) SetGeneration(ctx context.Context, h extensions.Handle, generation int64) error {
	return failed("set generation", h.ID, b.change(ctx, h, map[string]string{"raise": formatInt(generation)}))
}
