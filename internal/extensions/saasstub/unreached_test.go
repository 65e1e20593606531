package saasstub_test

import (
	"context"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// Only a refused connection proves that nothing arrived.
func TestOnlyWhatWasNeverSentIsUnreachableWithoutAHandle(t *testing.T) {
	t.Parallel()
	t.Run("an answer nobody waited for", func(t *testing.T) {
		t.Parallel()
		b, cfg := opened(t, saasstub.New())
		script(t, cfg, one(vendor.OpCreate, vendor.DoHangBefore))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if h, _, err := b.Provision(ctx, exttest.Spec(t, cfg)); h.IsZero() || !extensions.IsKind(err, extensions.KindIndeterminate) {
			t.Errorf("handle %q, %s: %v", h.Encode(), extensions.KindOf(err), err)
		}
	})
	t.Run("an answer of a gateway", func(t *testing.T) {
		t.Parallel()
		b, cfg := opened(t, saasstub.New())
		script(t, cfg, one(vendor.OpCreate, vendor.DoBadGateway))
		if h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg)); h.IsZero() || !extensions.IsKind(err, extensions.KindIndeterminate) {
			t.Errorf("handle %q, %s: %v", h.Encode(), extensions.KindOf(err), err)
		}
	})
	t.Run("what an earlier call made cannot be looked at", func(t *testing.T) {
		t.Parallel()
		b, cfg := opened(t, saasstub.New())
		spec := exttest.Spec(t, cfg)
		made, _, err := b.Provision(t.Context(), spec)
		must(t, err)
		script(t, cfg, saasstub.Script{Rules: []saasstub.Rule{{Op: vendor.OpGet, Do: vendor.DoUnreachable}}})
		h, _, err := b.Provision(t.Context(), spec)
		if h.Encode() != made.Encode() || !extensions.IsKind(err, extensions.KindUnreachable) {
			t.Errorf("handle %q, it was %q; %s: %v", h.Encode(), made.Encode(), extensions.KindOf(err), err)
		}
	})
}
