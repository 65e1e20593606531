package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// tree is every file below dir with its content, but SQLite's side files.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "-wal") || strings.HasSuffix(path, "-shm") {
			return nil
		}
		out[path] = d.Type().String()
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out[path] += fmt.Sprintf(" %x", sha256.Sum256(b))
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

// look does all that must not write.
func look(t *testing.T, e *engine.Engine, rec engine.Receipt, req engine.Request) {
	t.Helper()
	ctx := context.Background()
	if _, err := e.Plan(ctx, req); err != nil {
		t.Errorf("plan: %v", err)
	}
	_, _ = e.Get(ctx, rec)
	if _, err := e.List(ctx, true); err != nil {
		t.Errorf("list: %v", err)
	}
	_, _ = e.Lookup(ctx, "", "", "one")
	_, _ = e.Lookup(ctx, rec.ID, "", "")
	_, _ = e.LookupSnapshot(ctx, "snp-aaaaaaaaaaaaaaaaaaaa")
	_, _ = e.LookupHost(ctx, "nobody")
	if _, err := e.PlanUpdate(ctx, rec, req, req); err != nil {
		t.Errorf("plan of an update: %v", err)
	}
	if _, err := e.Events(ctx, "", 0); err != nil {
		t.Errorf("events: %v", err)
	}
	if _, err := e.Charges(ctx, rec.ID); err != nil {
		t.Errorf("charges: %v", err)
	}
	if _, _, err := verifyLedger(ctx, e); err != nil {
		t.Errorf("verify: %v", err)
	}
	if _, err := e.Sweep(ctx, true, nil); err != nil {
		t.Errorf("dry sweep: %v", err)
	}
}

func TestLookingWritesNothing(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"profile.stub", "profile.quickstart"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			req := engine.Request{Profile: profile, Name: "one", TTL: "10m"}
			s := b.create(req)
			if err := b.Close(); err != nil { // the log is written back
				t.Fatal(err)
			}
			ledgerOf := func() map[string]string {
				all := tree(t, b.StateDir)
				// A vendor counts its calls; what it holds is not ours to write.
				maps.DeleteFunc(all, func(p, _ string) bool {
					return strings.Contains(p, "saas-stub") || strings.HasPrefix(p, filepath.Join(b.StateDir, "local", string(s.ID)))
				})
				return all
			}
			before, known := ledgerOf(), b.left()
			e := b.reopen()
			look(t, e, s.Receipt, req)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, ledgerOf()); d != "" || !slices.Equal(known, b.left()) {
				t.Errorf("looking changed (-before +after):\n%s", d)
			}
		})
	}
}

func TestLookingMakesNoStateFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there")
	e := newBench(t, onMachine(dir)).Engine
	rec := engine.Receipt{Version: 1, ID: "sbx-aaaaaaaaaaaaaaaaaaaa", Account: "acme/web", Name: "one", Extension: "ext.saas-stub",
		CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}
	look(t, e, rec, engine.Request{Profile: "profile.stub", Name: "one"})
	look(t, e, engine.Receipt{Version: 1, ID: rec.ID, Extension: "ext.local", CreatedAt: time.Now()},
		engine.Request{Profile: "profile.quickstart", Name: "one"})
	if _, err := e.Destroy(context.Background(), rec, engine.DestroyOptions{}); err != nil {
		t.Errorf("destroy of what is nowhere: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	files := tree(t, dir)
	maps.DeleteFunc(files, func(p, _ string) bool { return strings.Contains(p, "saas-stub") || p == dir }) // the vendor's own
	if len(files) > 0 {
		t.Errorf("made: %v", slices.Collect(maps.Keys(files)))
	}
}

func TestAnEstimateIsAFunctionOfArgumentsAndCatalogAlone(t *testing.T) {
	t.Setenv("SAAS_STUB_API_KEY", "")
	host := extensions.Host{Name: "here", Local: true, Cost: &extensions.HostCost{PerHour: "0.40 USD", CPU: 8, MemoryMB: 16384}}
	for _, req := range []engine.Request{
		{Profile: "profile.stub", Name: "one", TTL: "2h"},
		{Profile: "profile.quickstart", Name: "one", TTL: "2h", Hosts: []string{host.Ref()}},
	} {
		t.Run(req.Profile, func(t *testing.T) {
			plan := func(e *engine.Engine) string {
				p, err := e.Plan(context.Background(), req)
				if err != nil && len(p.Estimate.Candidates) == 0 {
					t.Fatal(err)
				}
				text, err := json.Marshal(p.Estimate)
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(p.EstimateKnown, p.Pinned, p.Extension, p.Host, p.TTL, string(text))
			}
			first := newBench(t)
			want := plan(first.Engine)
			other := newBench(t)
			other.Now = func() time.Time { return time.Date(2031, 2, 3, 4, 5, 6, 7, time.UTC) }
			for i := range 3 {
				other.create(engine.Request{Profile: "profile.stub", Name: fmt.Sprintf("busy%d", i)})
			}
			if _, err := other.RegisterHost(context.Background(), extensions.Host{Name: "elsewhere", Local: true}, ""); err != nil {
				t.Fatal(err)
			}
			t.Setenv("SAAS_STUB_API_KEY", "other")
			e := other.reopen(as("other/account"), func(b *bench) {
				b.Credentials = map[string]map[string]engine.Secret{"ext.saas-stub": {"api_key": extensions.NewSecret("some key")}}
			})
			for range 3 {
				if got := plan(e); got != want {
					t.Errorf("%s\nis not\n%s", got, want)
				}
			}
		})
	}
}

func TestWhereASnapshotLivesIsNoPartOfAnEstimate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	snap, err := b.Snapshot(context.Background(), s.Receipt, engine.SnapshotRequest{Name: ""})
	if err != nil {
		t.Fatal(err)
	}
	req := engine.Request{Profile: "profile.stub", Name: "two", FromSnapshot: snap.ID}
	for _, e := range []*engine.Engine{b.Engine, b.elsewhere()} {
		if p, err := e.Plan(context.Background(), req); err != nil || p.EstimateKnown || p.Pinned {
			t.Errorf("known %t, pinned %t, %v", p.EstimateKnown, p.Pinned, err)
		}
	}
}
