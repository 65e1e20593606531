package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func TestAnExtensionByOthersSurvivesTheOwnersNextChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	req := engine.Request{Profile: "profile.stub", Name: "one", TTL: "10m"}
	s := b.create(req)
	longer, err := b.ExtendTTL(ctx, s.Receipt, 30*time.Minute)
	if err != nil || !longer.ExpiresAt.Equal(s.CreatedAt.Add(30*time.Minute)) || longer.Request.TTL != "10m" {
		t.Fatalf("extended to %s, request says %s, %v", longer.ExpiresAt, longer.Request.TTL, err)
	}
	req.Consumer.RunID = "another"
	for _, c := range []struct {
		ttl  string
		want time.Duration
	}{{"10m", 30 * time.Minute}, {"20m", 30 * time.Minute}, {"40m", 40 * time.Minute}, {"5m", 5 * time.Minute}} {
		req.TTL = c.ttl
		got, err := b.Update(ctx, s.Receipt, req, nil)
		if err != nil || !got.ExpiresAt.Equal(s.CreatedAt.Add(c.want)) || !b.deadline(s.ID).Equal(got.ExpiresAt) {
			t.Errorf("ttl %s: ends %s after its start, the vendor %s, %v", c.ttl, got.ExpiresAt.Sub(s.CreatedAt), b.deadline(s.ID).Sub(s.CreatedAt),
				err)
		}
		if d := cmp.Diff(req, got.Request, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "SecretNames" }, cmp.Ignore())); d != "" {
			t.Errorf("ttl %s: recorded (-asked +recorded)\n%s", c.ttl, d)
		}
	}
	b.clean()
}

func TestWhatTheVendorDoesNotMoveStaysAsItWas(t *testing.T) {
	t.Parallel()
	takesLong(t)
	for name, do := range map[string]vendor.Action{"refused": vendor.DoInvalid, "unauthorized": vendor.DoUnauthorized,
		"unreachable": vendor.DoUnreachable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			s := b.create(engine.Request{Profile: "profile.stub", Name: "one", TTL: "10m"})
			b.script(saasstub.Rule{Op: vendor.OpExtend, Do: do})
			_, err := b.Update(ctx, s.Receipt, engine.Request{Profile: "profile.stub", Name: "one", TTL: "20m"}, nil)
			row, lerr := b.Lookup(ctx, s.ID, "", "")
			if err == nil || lerr != nil || !row.ExpiresAt.Equal(s.ExpiresAt) || row.Request.TTL != "10m" || row.State != "ready" ||
				!b.deadline(s.ID).Equal(s.ExpiresAt) {
				t.Errorf("%v: the ledger says %s by ttl %s, the vendor %s, it was %s", err, row.ExpiresAt, row.Request.TTL, b.deadline(s.ID),
					s.ExpiresAt)
			}
			b.clean()
		})
	}
}

func TestAMoveWhoseAnswerWasLostCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one", TTL: "10m"})
	b.script(saasstub.Rule{Op: vendor.OpExtend, Do: vendor.DoLoseAnswer, Times: 1})
	got, err := b.Update(ctx, s.Receipt, engine.Request{Profile: "profile.stub", Name: "one", TTL: "20m"}, nil)
	if err != nil || !got.ExpiresAt.Equal(s.CreatedAt.Add(20*time.Minute)) || !b.deadline(s.ID).Equal(got.ExpiresAt) {
		t.Errorf("%v: the ledger says %s, the vendor %s", err, got.ExpiresAt, b.deadline(s.ID))
	}
	b.clean()
}

func TestAChangeThatComesTooLateChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one", TTL: "10m"})
	// The vendor has ended it; by our clock it has a moment left.
	if err := vendor.At(b.StateDir + "/saas-stub").Advance(time.Hour); err != nil {
		t.Fatal(err)
	}
	b.Now = func() time.Time { return s.CreatedAt }
	_, err := b.reopen().Update(ctx, s.Receipt, engine.Request{Profile: "profile.stub", Name: "one", TTL: "20m"}, nil)
	if err == nil {
		t.Error("what has ended was extended")
	}
	b.Now = nil
	row, lerr := b.Lookup(ctx, s.ID, "", "")
	if lerr != nil || !row.ExpiresAt.Equal(s.ExpiresAt) {
		t.Errorf("ends %s, %v", row.ExpiresAt, lerr)
	}
	if _, err := b.later(time.Hour).Update(ctx, s.Receipt, engine.Request{Profile: "profile.stub", Name: "one", TTL: "20m"},
		nil); !extensions.IsKind(err, extensions.KindConflict) || extensions.RemedyOf(err) == "" {
		t.Errorf("after its end: %v", err)
	}
	b.clean()
}

func TestAdoptingMovesTheEndAndKeepsTheSecrets(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"profile.stub", "profile.quickstart"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			req := engine.Request{Profile: profile, Name: "one", TTL: "10m", Secrets: map[string]engine.Secret{"K": extensions.NewSecret("old")}}
			s := b.create(req)
			req.TTL, req.OnConflict, req.Secrets, req.SecretsVersion = "20m", "adopt", map[string]engine.Secret{"K": extensions.NewSecret("new")}, 2
			req.Consumer.RunID = "second"
			taken := b.create(req)
			if taken.ID != s.ID || !taken.ExpiresAt.Equal(s.CreatedAt.Add(20*time.Minute)) || !b.deadline(s.ID).Equal(taken.ExpiresAt) {
				t.Errorf("%s ends %s, the place says %s", taken.ID, taken.ExpiresAt, b.deadline(s.ID))
			}
			if got := strings.TrimSpace(b.sh(taken.Receipt, "echo $K")); got != "old" ||
				!strings.Contains(notices(taken.Notices), "keeps its secrets") {
				t.Errorf("K is %q; told %s", got, notices(taken.Notices))
			}
			if taken.Request.Consumer.RunID != "second" || taken.Request.SecretsVersion != 2 {
				t.Errorf("recorded %+v", taken.Request)
			}
			if _, err := b.Destroy(context.Background(), taken.Receipt, engine.DestroyOptions{}); err != nil || len(b.left()) > 0 {
				t.Errorf("%v, left %v", err, b.left())
			}
			b.clean()
		})
	}
}

func TestWhatCannotBeAskedIsNotTakenFromItsOwner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	req := engine.Request{Profile: "profile.stub", Name: "one"}
	s := b.create(req)
	b.script(saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
	req.OnConflict = "adopt"
	if _, err := b.reopen().Create(ctx, req, nil, nil); !extensions.IsKind(err, extensions.KindUnreachable) {
		t.Errorf("adopted blindly: %v", err)
	}
	b.script()
	if got, err := b.reopen().Get(ctx, s.Receipt); err != nil || got.Generation != s.Generation {
		t.Errorf("its owner reads generation %d, %v", got.Generation, err)
	}
	b.clean()
}

func TestLongNamesAndPrefixesAreWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	long := strings.Repeat("n", 63)
	if s := b.create(engine.Request{Profile: "profile.stub", Name: long}); s.Name != long {
		t.Errorf("named %s", s.Name)
	}
	prefix := strings.Repeat("p", 53) + "-"
	one, two := b.create(engine.Request{Profile: "profile.stub", NamePrefix: prefix}), b.create(engine.Request{Profile: "profile.stub",
		NamePrefix: prefix})
	for _, s := range []engine.Sandbox{one, two} {
		if !strings.HasPrefix(s.Name, prefix) || len(s.Name) > 63 || engine.CheckName(s.Name) != nil {
			t.Errorf("named %s", s.Name)
		}
	}
	if one.Name == two.Name {
		t.Error("both have one name")
	}
	if s := b.create(engine.Request{Profile: "profile.stub"}); s.Name != string(s.ID) {
		t.Errorf("named %s", s.Name)
	}
}

func TestAMirroredWorkspaceComesBackBeforeItIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := folder(t, map[string]string{"a.txt": "a\n"})
	s := b.create(engine.Request{Profile: "profile.mirror", Name: "one", Inputs: map[string]any{"repo": dir}})
	b.sh(s.Receipt, "echo work > b.txt")
	again, err := b.Recreate(context.Background(), s.Receipt, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if read(t, dir, "b.txt") != "work\n" || b.sh(again.Receipt, "cat b.txt") != "work\n" {
		t.Errorf("the work is %q here", read(t, dir, "b.txt"))
	}
}
