package composessh

import (
	"context"
	"maps"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// change runs sh/change.sh on a sandbox that lives.
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

// Extend implements extensions.Extender: one small write, which the timer's
// loop reads within five seconds.
func (b *Backend) Extend(ctx context.Context, h extensions.Handle, deadline time.Time) error {
	if deadline.IsZero() {
		return failed("extend", h.ID, extensions.Errorf(extensions.KindInvalid, "a sandbox on a host always has a deadline"))
	}
	return failed("extend", h.ID, b.change(ctx, h, map[string]string{
		"remaining": centis(max(time.Until(deadline), 0)), "until": deadline.UTC().Format(time.RFC3339Nano)}))
}

// changeFiles are what the operation change is put together from.
var changeFiles = []string{"lease", "look", "timer", "change"}

// SetGeneration implements extensions.GenerationSetter. The labels of the
// containers keep the generation they were made with; the record counts.
func (b *Backend) SetGeneration(ctx context.Context, h extensions.Handle, generation int64) error {
	return failed("set generation", h.ID, b.change(ctx, h, map[string]string{"raise": formatInt(generation)}))
}
