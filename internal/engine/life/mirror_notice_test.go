package life

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// An archive that is not whole is not called the workspace.
func TestTheNoticeOfWhatIsLeftSaysWhatTheArchiveLacks(t *testing.T) {
	t.Parallel()
	whole := leftNotice(synced{}, extensions.Errorf(extensions.KindInvalid, "it is gone"), "sbx-1", "/here", "/kept/1.tar").Detail
	if strings.Contains(whole, "Missing in the archive") || !strings.Contains(whole, "it is gone") {
		t.Errorf("of a whole one: %s", whole)
	}
	part := leftNotice(synced{lacks: &extensions.Incomplete{More: true, Why: "db.img: mostly holes"}}, nil, "sbx-1", "/here",
		"/kept/1.tar").Detail
	for _, want := range []string{"is in the archive /kept/1.tar, without unreadable files, which are lost",
		"Missing in the archive: some objects could not be read: db.img"} {
		if !strings.Contains(part, want) {
			t.Errorf("%q is not in: %s", want, part)
		}
	}
	if strings.Contains(part, "kept as they are") {
		t.Errorf("nothing was kept here: %s", part)
	}
}
