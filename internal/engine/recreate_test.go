package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// What is made again after its profile was raised is of the new version, and so
// is what it is charged as.
func TestAProfileThatWasRaisedIsThatOfTheNextLife(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const file = "profiles/profile.v.yaml"
	text := func(version, most string) string {
		return "id: profile.v\nversion: \"" + version + "\"\nextends: profile.quickstart\nttl: { default: 10m, max: " + most + " }\n"
	}
	b := newBench(t, onFiles(map[string]string{file: text("1.0.0", "1h")}))
	s := b.create(engine.Request{Profile: "profile.v", Name: "one"})
	write(t, b.catalog, file, text("2.0.0", "20m"))
	e := b.reopen()
	again, err := e.Recreate(ctx, s.Receipt, nil, nil)
	if err != nil || again.Version != "2.0.0" {
		t.Fatalf("%s, %s", again.Version, told(err))
	}
	if m := b.meters(s.ID); len(m) != 2 || m[0].For.ProfileVersion != "1.0.0" || m[1].For.ProfileVersion != "2.0.0" {
		t.Errorf("%+v", m)
	}
	if _, err := e.ExtendTTL(ctx, again.Receipt, 30*time.Minute); err == nil {
		t.Error("it may live longer than its profile allows by now")
	}
	if _, err := e.Destroy(ctx, again.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(told(err))
	}
}
