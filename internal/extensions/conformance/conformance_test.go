package conformance

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	for _, group := range []map[string]mutant{coreMutants, egressMutants, entrypointMutants, listMutants, urlMutants, placeMutants,
		declareMutants, execMutants, fileMutants, powerMutants, readSnapshotMutants, forkMutants, pauseMutants, idleMutants} {
		maps.Copy(all, group)
	}
	return all
}

func place(cfg extensions.Config) *vendor.Vendor { return vendor.At(cfg.Values["dir"].(string)) }

// overSSH is a host that nothing dials.
var overSSH = &extensions.Host{Name: "one", SSH: &extensions.SSH{Address: "192.0.2.7"}}

func harnessFor(ext extensions.Extension) Harness {
	rule := func(t TB, cfg extensions.Config, r ...saasstub.Rule) {
		t.Helper()
		if err := saasstub.WriteScript(place(cfg).Dir(), saasstub.Script{Rules: r}); err != nil {
			t.Fatal(err)
		}
	}
	do := func(t TB, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	return Harness{
		patience: testPatience,
		New:      func(TB) extensions.Extension { return ext },
		Config: func(t TB) extensions.Config {
			return extensions.Config{Binding: "ext.stub", Account: "acme/web", Values: map[string]any{"dir": t.TempDir()}}
		},
		Unreachable: func(t TB, cfg extensions.Config) {
			rule(t, cfg, saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
			t.Cleanup(func() { rule(t, cfg) })
		},
		Unauthorized: func(t TB, cfg extensions.Config) extensions.Config {
			do(t, saasstub.WriteScript(place(cfg).Dir(), saasstub.Script{RequireKey: true}))
			return cfg
		},
		Accepted: func(t TB, cfg extensions.Config, names []string) map[string]extensions.Secret {
			do(t, saasstub.WriteScript(place(cfg).Dir(), saasstub.Script{RequireKey: true}))
			given := map[string]extensions.Secret{}
			for _, n := range names {
				given[n] = extensions.NewSecret("accepted")
			}
			return given
		},
		Exhaust: func(t TB, cfg extensions.Config) {
			rule(t, cfg, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota, Times: 1})
		},
		NotHere: func(t TB, cfg extensions.Config, spec extensions.Spec) extensions.Spec {
			rule(t, cfg, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoNotOffered, Times: 1})
			return spec
		},
		Throttle: func(t TB, cfg extensions.Config) {
			rule(t, cfg, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoThrottle, Times: 1, RetryAfter: vendor.Duration(time.Second)})
		},
		Falter: func(t TB, cfg extensions.Config) {
			rule(t, cfg, saasstub.Rule{Op: vendor.OpGet, Do: vendor.DoBadGateway, Times: 1})
		},
		LoseAnswer: func(t TB, cfg extensions.Config) {
			rule(t, cfg, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoLoseAnswer, Times: 1})
		},
		CutExec: func(t TB, cfg extensions.Config, _ extensions.Handle, _ <-chan struct{}) {
			rule(t, cfg, saasstub.Rule{Op: vendor.OpExec, Do: vendor.DoLoseAnswer, Times: 1})
		},
		Vanish: func(t TB, cfg extensions.Config, h extensions.Handle) { do(t, place(cfg).Vanish(string(h.ID))) },
		Relabel: func(t TB, cfg extensions.Config, h extensions.Handle, id extensions.ID) {
			do(t, place(cfg).Relabel(string(h.ID), extensions.LabelID, string(id)))
		},
		RelabelSnapshot: func(t TB, cfg extensions.Config, h extensions.SnapshotHandle, id string) {
			do(t, place(cfg).RelabelSnapshot(h.Ref, id))
		},
		Advance: func(t TB, cfg extensions.Config, d time.Duration) { do(t, place(cfg).Advance(d)) },
		Compute: func(t TB, cfg extensions.Config, h extensions.Handle, d time.Duration) {
			do(t, place(cfg).Compute(string(h.ID), d))
		},
		Residue: func(t TB, cfg extensions.Config) []string {
			var left []string
			for _, pattern := range []string{"sandboxes/*", "snapshots/*", "litter/*"} {
				found, err := filepath.Glob(filepath.Join(place(cfg).Dir(), pattern))
				do(t, err)
				left = append(left, found...)
			}
			return left
		},
		Outside: func(t TB, cfg extensions.Config) []string {
			b, err := os.ReadFile(filepath.Join(place(cfg).Dir(), "state.json"))
			do(t, err)
			return []string{string(b)}
		},
		Serve: func(TB, extensions.Backend, extensions.Handle) (string, int) { return "", 7 },
		Listen: func(t TB, cfg extensions.Config) []Listener {
			heard := func(word string) bool {
				heard, err := place(cfg).Heard(word)
				do(t, err)
				return heard
			}
			send := func(host string) func(string) []string {
				return func(word string) []string { return []string{"send", host, "443", word} }
			}
			return []Listener{
				{Domain: "*.example.com", Port: 443, Heard: heard, Send: map[string]func(string) []string{"tcp": send("www.example.com")}},
				{CIDR: "198.51.100.7/32", Port: 443, Heard: heard, Send: map[string]func(string) []string{"tcp": send("198.51.100.7"),
					WayName: func(word string) []string { return []string{"lookup", word + ".example.net"} }}},
			}
		},
		Knock: func(t TB, cfg extensions.Config, h extensions.Handle, _ int) bool {
			answers, err := place(cfg).Knock(string(h.ID))
			do(t, err)
			return answers
		},
		Pages: func(t TB, cfg extensions.Config) int {
			do(t, saasstub.WriteScript(place(cfg).Dir(), saasstub.Script{Page: 2}))
			return 5
		},
		BreakPages: map[string]func(TB, extensions.Config){
			"a page again and again": func(t TB, cfg extensions.Config) {
				do(t, saasstub.WriteScript(place(cfg).Dir(), saasstub.Script{Page: 2,
					Rules: []saasstub.Rule{{Op: vendor.OpList, Do: vendor.DoRepeatPage}}}))
			},
			"an end before the last page": func(t TB, cfg extensions.Config) {
				do(t, saasstub.WriteScript(place(cfg).Dir(), saasstub.Script{Page: 2,
					Rules: []saasstub.Rule{{Op: vendor.OpList, Do: vendor.DoEndEarly}}}))
			},
		},
		OwnEntrypoint: func(_ TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			WithWorkspace(extensions.AccessRW, map[string]string{"entrypoint.sh": "printf own >ran; sleep 3600"})(&spec)
			return spec
		},
		Visit: func(t TB, cfg extensions.Config, _ extensions.Handle, _ int, address string, header extensions.Header) bool {
			answers, err := place(cfg).Visit(address, header.Value.Reveal())
			do(t, err)
			return answers
		},
		Desktop: func(TB, extensions.Config, extensions.Handle) bool { return false },
		Starts: func(t TB, cfg extensions.Config) int {
			calls, err := place(cfg).Calls()
			do(t, err)
			return int(calls[vendor.OpCreate])
		},
		At: func(t TB, _ extensions.Place) extensions.Config {
			return extensions.Config{Binding: "ext.stub", Account: "acme/web", Values: map[string]any{"dir": t.TempDir()}, Host: overSSH}
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
	results, err := Run(t.Context(), harnessFor(w), Choice{AtOnce: 8}, func(Result) {})
	if err != nil || len(results) != len(names()) {
		t.Fatalf("%d results of %d checks, %v", len(results), len(names()), err)
	}
	for i, r := range results {
		if r.Outcome != Passed || r.Name == "" {
			t.Errorf("%d %s %s: %s", i, r.Name, r.Outcome, strings.Join(r.Said, "\n"))
		}
	}
}

func TestEveryCheckHasItsMutant(t *testing.T) {
	t.Parallel()
	promised, all := names(), mutants()
	for _, n := range promised {
		if _, ok := all[n]; !ok {
			t.Errorf("nothing proves that %s can fail: add a mutant", n)
		}
	}
	for n := range all {
		if !slices.Contains(promised, n) {
			t.Errorf("the mutant %s belongs to no check", n)
		}
	}
	slices.Sort(promised)
	if len(slices.Compact(promised)) != len(names()) {
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

// names lists every check, including those of powers.
func names() []string {
	var all []string
	for _, c := range checks() {
		all = append(all, c.name)
	}
	return all
}

// TestEachCheckFailsItsMutant runs all checks of the family, so that a
// breakage fails the check it is for and no other of them.
func TestEachCheckFailsItsMutant(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: lets no mutant hang")
	}
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

// foldersOf keeps a check's folders until what a broken extension left running has ended.
type foldersOf struct {
	TB
	t *testing.T
}

func (f foldersOf) TempDir() string { return f.t.TempDir() }

// judge runs one check against the mutant of the check called name.
func judge(t *testing.T, c check, name string, m mutant) {
	t.Helper()
	ext := brokenExtension{whole: newWhole(), m: m}
	r := try(c.name, func(tried TB) { c.start(foldersOf{tried, t}, harnessFor(ext), &common{}) })
	ext.busy.Wait()
	want := c.name == name || slices.Contains(m.also, c.name)
	switch {
	case r.Outcome == Skipped:
		t.Errorf("%s was skipped: %s", c.name, strings.Join(r.Said, "\n"))
	case want && r.Outcome != Failed:
		t.Errorf("%s passed: it does not see this breakage", c.name)
	case !want && r.Outcome == Failed:
		t.Errorf("%s failed, too: %s", c.name, strings.Join(r.Said, "\n"))
	}
}
