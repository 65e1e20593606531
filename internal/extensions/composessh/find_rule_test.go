package composessh

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Whatever docker still holds of a sandbox, of any kind, it is not absent, and goes
// with a teardown by the id alone.
func TestWhatIsLeftOfAnyKindIsFound(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	label := []string{"--label", extensions.LabelID + "="}
	for kind, create := range map[string][]string{
		"volumes":  {"volume", "create"},
		"networks": {"network", "create", "--internal", "--subnet", ownRange()},
	} {
		id, err := extensions.NewID(nil)
		must(t, err)
		_, err = b.Find(t.Context(), id)
		wantKind(t, "nothing at all", err, extensions.KindNotFound)
		docker(t, append(append([]string{}, create...), label[0], label[1]+string(id), string(id)+"_left")...)
		s.tearDownAtEnd(t, id)
		h, err := b.Find(t.Context(), id)
		must(t, err)
		r, err := b.Teardown(t.Context(), h)
		must(t, err)
		if got := strings.Join(r.Removed, " "); got != kind {
			t.Errorf("removed %q, want %s", got, kind)
		}
		_, err = b.Find(t.Context(), id)
		wantKind(t, "after a teardown", err, extensions.KindNotFound)
	}
}
