package life

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A ledger that cannot be written just now has the kind that lets a place be
// asked again or passed over; after something was made, neither may happen.
func TestALedgersFailureIsNoReasonToAskThePlaceAgain(t *testing.T) {
	t.Parallel()
	full := extensions.Errorf(extensions.KindUnavailable, "the disk is full").WithRemedy("free some space")
	err := notRecorded(full)
	if !allowsNext(full) || allowsNext(err) || !extensions.IsKind(err, extensions.KindInternal) ||
		extensions.RemedyOf(err) != "free some space" {
		t.Errorf("%v of kind %s: %s", err, extensions.KindOf(err), extensions.RemedyOf(err))
	}
}

// Where a listing may lag, too, nothing was made, so nothing is unknown.
func TestASnapshotThatItsPlaceDoesNotShowIsAMistake(t *testing.T) {
	t.Parallel()
	for kind, want := range map[extensions.Kind]extensions.Kind{extensions.KindNotFound: extensions.KindInvalid,
		extensions.KindIndeterminate: extensions.KindInvalid, extensions.KindUnreachable: extensions.KindUnreachable} {
		err := snapshotElsewhere(&route.Candidate{}, "snp-x", extensions.Errorf(kind, "it does not list it").WithRemedy("look again"))
		if !extensions.IsKind(err, want) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v of kind %s", kind, err, extensions.KindOf(err))
		}
	}
}
