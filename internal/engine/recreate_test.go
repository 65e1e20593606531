package engine_test

import (
	"context"
	"os"
	"path/filepath"
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
	b := newBench(t)
	dir := folder(t, map[string]string{file: text("1.0.0", "1h")})
	open := func() *engine.Engine {
		t.Helper()
		e, err := engine.New(engine.Options{Extensions: all(), StateDir: b.dir, Account: "acme/web", Catalog: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	s, err := open().Create(ctx, engine.Request{Profile: "profile.v", Name: "one"}, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text("2.0.0", "20m")), 0o600); err != nil {
		t.Fatal(err)
	}
	e := open()
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
