package pace_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/pace"
)

// A minute's creates come at once; the next one waits for its share of a minute.
func TestTheCreatesOfAMinuteMayComeAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values map[string]any
		n      int
	}{
		"configured": {map[string]any{"creates_per_minute": int64(3)}, 3},
		"default":    {nil, 12},
	} {
		l, now := pace.Of(c.values, 12), time.Now()
		if !l.AllowN(now, c.n) || l.AllowN(now, 1) {
			t.Errorf("%s: not %d at once", name, c.n)
		}
		share := time.Minute / time.Duration(c.n)
		if l.AllowN(now.Add(share-time.Millisecond), 1) || !l.AllowN(now.Add(share), 1) {
			t.Errorf("%s: the next one does not wait %s", name, share)
		}
	}
}

// What would divide a minute by nothing is refused where the catalog is read.
func TestOnlyAPaceIsAccepted(t *testing.T) {
	t.Parallel()
	f := pace.Field(60, ", as its plan allows")
	if !strings.HasSuffix(f.Doc, "default: 60, as its plan allows.") {
		t.Errorf("%q", f.Doc)
	}
	for value, ok := range map[int64]bool{-1: false, 0: false, 1: true, 60_000: true, 60_001: false} {
		if err := extensions.CheckFields("config", []extensions.Field{f}, map[string]any{f.Name: value}); (err == nil) != ok {
			t.Errorf("%d: %v", value, err)
		}
	}
}
