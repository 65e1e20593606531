package exttest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mutants has one broken extension for each check, by the check's name.
func mutants() map[string]mutant {
	all := map[string]mutant{}
	for _, group := range []map[string]mutant{coreMutants, execMutants, fileMutants, powerMutants} {
		maps.Copy(all, group)
	}
	return all
}

func place(cfg extensions.Config) *vendor.Vendor { return vendor.At(cfg.Values["dir"].(string)) }

func harnessFor(ext extensions.Extension) Harness {
	rule := func(t testing.TB, cfg extensions.Config, r ...saasstub.Rule) {
		t.Helper()
		if err := saasstub.WriteScript(place(cfg).Dir(), saasstub.Script{Rules: r}); err != nil {
			t.Fatal(err)
		}
	}
	do := func(t testing.TB, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	return Harness{
		patience: testPatience,
		New:      func(testing.TB) extensions.Extension { return ext },
		Config: func(t testing.TB) extensions.Config {
			return extensions.Config{Binding: "ext.stub", Account: "acme/web", Values: map[string]any{"dir": t.TempDir()}}
		},
		Unreachable: func(t testing.TB, cfg extensions.Config) {
			rule(t, cfg, saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
			t.Cleanup(func() { rule(t, cfg) })
		},
		Unauthorized: func(t testing.TB, cfg extensions.Config) extensions.Config {
			do(t, saasstub.WriteScript(place(cfg).Dir(), saasstub.Script{RequireKey: true}))
			return cfg
		},
		Exhaust: func(t testing.TB, cfg extensions.Config) {
			rule(t, cfg, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota, Times: 1})
		},
		LoseAnswer: func(t testing.TB, cfg extensions.Config) {
			rule(t, cfg, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoLoseAnswer, Times: 1})
		},
		Vanish: func(t testing.TB, cfg extensions.Config, h extensions.Handle) { do(t, place(cfg).Vanish(string(h.ID))) },
		Relabel: func(t testing.TB, cfg extensions.Config, h extensions.Handle, id extensions.ID) {
			do(t, place(cfg).Relabel(string(h.ID), extensions.LabelID, string(id)))
		},
		RelabelSnapshot: func(t testing.TB, cfg extensions.Config, h extensions.SnapshotHandle, id string) {
			do(t, place(cfg).RelabelSnapshot(h.Ref, id))
		},
		Advance: func(t testing.TB, cfg extensions.Config, d time.Duration) { do(t, place(cfg).Advance(d)) },
		Residue: func(t testing.TB, cfg extensions.Config) []string {
			var left []string
			for _, pattern := range []string{"sandboxes/*", "snapshots/*", "litter/*"} {
				found, err := filepath.Glob(filepath.Join(place(cfg).Dir(), pattern))
				do(t, err)
				left = append(left, found...)
			}
			return left
		},
		Outside: func(t testing.TB, cfg extensions.Config) []string {
			b, err := os.ReadFile(filepath.Join(place(cfg).Dir(), "state.json"))
			do(t, err)
			return []string{string(b)}
		},
		Serve: func(testing.TB, extensions.Backend, extensions.Handle) (string, int) { return "", 7 },
		Starts: func(t testing.TB, cfg extensions.Config) int {
			calls, err := place(cfg).Calls()
			do(t, err)
			return int(calls[vendor.OpCreate])
		},
		User: "sandbox",
	}
}

func TestWholeStubPassesEveryCheck(t *testing.T) {
	t.Parallel()
	w := newWhole()
	t.Cleanup(w.busy.Wait)
	for _, c := range checks() {
		if !c.applies(w.Describe()) {
			t.Errorf("%s does not apply to an extension that declares everything", c.name)
		}
	}
	Run(t, harnessFor(w))
}

func TestEveryCheckHasItsMutant(t *testing.T) {
	t.Parallel()
	names, all := Names(), mutants()
	for _, n := range names {
		if _, ok := all[n]; !ok {
			t.Errorf("nothing proves that %s can fail: add a mutant", n)
		}
	}
	for n := range all {
		if !slices.Contains(names, n) {
			t.Errorf("the mutant %s belongs to no check", n)
		}
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(Names()) {
		t.Error("two checks have one name")
	}
}

func TestTheSuiteKnowsEveryPower(t *testing.T) {
	t.Parallel()
	has := implemented(nil)
	for _, p := range extensions.Powers {
		if _, known := has[p]; !known {
			t.Errorf("the suite does not know the power %q", p)
		}
	}
}

// TestEachCheckFailsItsMutant runs all checks of the family, so that a
// breakage fails the check it is for and no other of them.
func TestEachCheckFailsItsMutant(t *testing.T) {
	t.Parallel()
	family := map[string]int{}
	for _, c := range checks() {
		family[c.name] = c.family
	}
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup
			defer wg.Wait()
			atOnce := make(chan struct{}, 4) // most of a check is waiting
			for _, c := range checks() {
				if c.family != family[name] || !c.applies(brokenExtension{whole: newWhole(), m: m}.Describe()) {
					continue
				}
				atOnce <- struct{}{}
				wg.Go(func() {
					judge(t, c, name, m)
					<-atOnce
				})
			}
		})
	}
}

// judge runs one check against the mutant of the check called name.
func judge(t *testing.T, c check, name string, m mutant) {
	t.Helper()
	ext := brokenExtension{whole: newWhole(), m: m}
	r := record(t, c, harnessFor(ext))
	ext.busy.Wait()
	want := c.name == name || slices.Contains(m.also, c.name)
	switch {
	case r.Skipped():
		t.Errorf("%s was skipped: %s", c.name, r.text())
	case want && !r.Failed():
		t.Errorf("%s passed: it does not see this breakage", c.name)
	case !want && r.Failed():
		t.Errorf("%s failed, too: %s", c.name, r.text())
	}
}
