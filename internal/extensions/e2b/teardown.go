package e2b

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// gone is how long a sandbox that was killed may be told of.
var gone = ready.Wait{Interval: 250 * time.Millisecond, Timeout: 15 * time.Second}

// Teardown implements extensions.Backend.
func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	report, err := b.teardown(ctx, h)
	return report, failed("teardown", h.ID, err)
}

func (b *backend) teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	d, err := b.owned(ctx, h)
	if extensions.IsKind(err, extensions.KindNotFound) {
		err := b.dropFork(ctx, h.ID, nil)
		return extensions.CleanupReport{AlreadyGone: err == nil}, err
	}
	if extensions.IsKind(err, extensions.KindIndeterminate) && h.Ref == "" { // not listed: what a fork comes from goes meanwhile
		return report, errors.Join(err, b.dropFork(ctx, h.ID, nil))
	}
	if err != nil {
		return report, err
	}
	if err := b.kill(ctx, d.SandboxID); err != nil {
		return report, err
	}
	report = extensions.CleanupReport{Removed: []string{"sandbox " + d.SandboxID}, StartedAt: d.StartedAt}
	err = gone.Gone(ctx, vendor+" still shows "+d.SandboxID, func(ctx context.Context) error {
		_, err := b.get(ctx, d.SandboxID)
		return err
	})
	if err == nil {
		err = b.dropFork(ctx, h.ID, d)
		removed, left := b.templateEnds(ctx, d)
		report.Removed = append(report.Removed, removed...)
		if left != nil {
			report.Residue = append(report.Residue, "a template that was built for it: it is removed with the next one after "+unused.String())
		}
	}
	return report, err
}

// kill ends a sandbox, running or paused. One that is gone is success.
func (b *backend) kill(ctx context.Context, ref string) error {
	_, err := b.act(ctx, http.MethodDelete, ref, "", nil, nil, nil)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return err
}
