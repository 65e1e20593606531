package saasstub

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// Teardown implements extensions.Backend. It reads the meter first, because the vendor deletes it with the
// object.
func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	report, err := b.teardown(ctx, h)
	return report, failed("teardown", h.ID, err)
}

func (b *backend) teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	gone := extensions.CleanupReport{AlreadyGone: true}
	ref, err := b.ref(ctx, h)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return gone, nil
	}
	if err != nil {
		return report, err
	}
	obj, now, err := b.client.Usage(ctx, ref)
	if hasCode(err, vendor.CodeNotFound) {
		return gone, nil
	}
	if err != nil {
		return report, err
	}
	if obj.Labels[extensions.LabelID] != string(h.ID) {
		return report, extensions.Errorf(extensions.KindConflict, "the vendor's object %s does not carry this sandbox's id", ref).
			WithRemedy("check it at the vendor; sandboxer does not own it")
	}
	if err := b.client.Delete(ctx, ref); err != nil {
		if hasCode(err, vendor.CodeNotFound) {
			return gone, nil
		}
		return report, err
	}
	left, _, err := b.client.Get(ctx, ref)
	if err != nil {
		return report, err
	}
	if left[0] != nil {
		return report, extensions.Errorf(extensions.KindInternal, "the vendor still shows %s after deleting it", ref)
	}
	usage := measure(obj, now)
	_, usage.EndedAt = obj.Metered(now)
	return extensions.CleanupReport{Removed: []string{"sandbox " + ref}, StartedAt: usage.StartedAt, EndedAt: usage.EndedAt, Usage: &usage},
		nil
}
