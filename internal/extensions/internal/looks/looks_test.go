package looks_test

import (
	"context"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/looks"
)

func TestOnlyTheVendorsWordProvesAbsence(t *testing.T) {
	t.Parallel()
	kinds := []extensions.Kind{"", extensions.KindNotFound, extensions.KindConflict, extensions.KindUnauthorized, extensions.KindUnreachable,
		extensions.KindIndeterminate}
	handles := make([]extensions.Handle, 4*looks.AtOnce)
	for i := range handles {
		handles[i] = extensions.Handle{ID: extensions.ID(kinds[i%len(kinds)])}
	}
	all := looks.Each(t.Context(), "Vendor", handles, func(_ context.Context, h extensions.Handle) (extensions.Observation, error) {
		if h.ID == "" {
			return extensions.Observation{Phase: extensions.PhaseReady}, nil
		}
		return extensions.Observation{}, extensions.Errorf(extensions.Kind(h.ID), "no")
	})
	for i, o := range all {
		want := extensions.PhaseUnreachable
		switch kinds[i%len(kinds)] {
		case "":
			want = extensions.PhaseReady
		case extensions.KindNotFound, extensions.KindConflict:
			want = extensions.PhaseAbsent
		}
		if o.Phase != want || (o.Err != nil) != (want == extensions.PhaseUnreachable) || o.ID != handles[i].ID {
			t.Errorf("%d: %+v", i, o)
		}
	}
}
