package saasstub_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func dirOf(cfg extensions.Config) string { return cfg.Values["dir"].(string) }

func script(t testing.TB, cfg extensions.Config, s saasstub.Script) {
	t.Helper()
	if err := saasstub.WriteScript(dirOf(cfg), s); err != nil {
		t.Fatal(err)
	}
}

func one(op vendor.Op, do vendor.Action) saasstub.Script {
	return saasstub.Script{Rules: []saasstub.Rule{{Op: op, Do: do, Times: 1}}}
}

// must fails the check that asked for something the operator could not do.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func harness(extension func() extensions.Extension) exttest.Harness {
	return exttest.Harness{
		New: func(testing.TB) extensions.Extension { return extension() },
		Config: func(t testing.TB) extensions.Config {
			return extensions.Config{Binding: "ext.saas-stub", Account: "acme/web", Values: map[string]any{"dir": t.TempDir()}}
		},
		Unreachable: func(t testing.TB, cfg extensions.Config) {
			script(t, cfg, saasstub.Script{Rules: []saasstub.Rule{{Op: vendor.OpAny, Do: vendor.DoUnreachable}}})
			t.Cleanup(func() { script(t, cfg, saasstub.Script{}) })
		},
		Unauthorized: func(t testing.TB, cfg extensions.Config) extensions.Config {
			script(t, cfg, saasstub.Script{RequireKey: true})
			return cfg
		},
		Exhaust: func(t testing.TB, cfg extensions.Config) { script(t, cfg, one(vendor.OpCreate, vendor.DoQuota)) },
		NotHere: func(t testing.TB, cfg extensions.Config, spec extensions.Spec) extensions.Spec {
			script(t, cfg, one(vendor.OpCreate, vendor.DoNotOffered))
			return spec
		},
		Throttle: func(t testing.TB, cfg extensions.Config) {
			script(t, cfg, saasstub.Script{Rules: []saasstub.Rule{{Op: vendor.OpCreate, Do: vendor.DoThrottle, Times: 1,
				RetryAfter: vendor.Duration(time.Second)}}})
		},
		Falter:     func(t testing.TB, cfg extensions.Config) { script(t, cfg, one(vendor.OpGet, vendor.DoBadGateway)) },
		LoseAnswer: func(t testing.TB, cfg extensions.Config) { script(t, cfg, one(vendor.OpCreate, vendor.DoLoseAnswer)) },
		CutExec: func(t testing.TB, cfg extensions.Config, _ extensions.Handle, _ <-chan struct{}) {
			script(t, cfg, one(vendor.OpExec, vendor.DoLoseAnswer))
		},
		Vanish: func(t testing.TB, cfg extensions.Config, h extensions.Handle) {
			must(t, vendor.At(dirOf(cfg)).Vanish(string(h.ID)))
		},
		Relabel: func(t testing.TB, cfg extensions.Config, h extensions.Handle, id extensions.ID) {
			must(t, vendor.At(dirOf(cfg)).Relabel(string(h.ID), extensions.LabelID, string(id)))
		},
		RelabelSnapshot: func(t testing.TB, cfg extensions.Config, h extensions.SnapshotHandle, id string) {
			must(t, vendor.At(dirOf(cfg)).RelabelSnapshot(h.Ref, id))
		},
		Advance: func(t testing.TB, cfg extensions.Config, d time.Duration) {
			must(t, vendor.At(dirOf(cfg)).Advance(d))
		},
		Compute: func(t testing.TB, cfg extensions.Config, h extensions.Handle, d time.Duration) {
			must(t, vendor.At(dirOf(cfg)).Compute(string(h.ID), d))
		},
		Listen: func(t testing.TB, cfg extensions.Config) []exttest.Listener {
			heard := func(word string) bool {
				heard, err := vendor.At(dirOf(cfg)).Heard(word)
				must(t, err)
				return heard
			}
			send := func(host string) func(string) []string {
				return func(word string) []string { return []string{"send", host, "443", word} }
			}
			return []exttest.Listener{
				{Domain: "*.example.com", Port: 443, Heard: heard, Send: map[string]func(string) []string{"tcp": send("www.example.com")}},
				{CIDR: "198.51.100.7/32", Port: 443, Heard: heard, Send: map[string]func(string) []string{"tcp": send("198.51.100.7"),
					exttest.WayName: func(word string) []string { return []string{"lookup", word + ".example.net"} }}},
			}
		},
		Pages: func(t testing.TB, cfg extensions.Config) int {
			script(t, cfg, saasstub.Script{Page: 2})
			return 5
		},
		BreakPages: map[string]func(testing.TB, extensions.Config){
			"a page again and again": func(t testing.TB, cfg extensions.Config) {
				script(t, cfg, saasstub.Script{Page: 2, Rules: []saasstub.Rule{{Op: vendor.OpList, Do: vendor.DoRepeatPage}}})
			},
			"an end before the last page": func(t testing.TB, cfg extensions.Config) {
				script(t, cfg, saasstub.Script{Page: 2, Rules: []saasstub.Rule{{Op: vendor.OpList, Do: vendor.DoEndEarly}}})
			},
		},
		OwnEntrypoint: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			exttest.WithWorkspace(extensions.AccessRW, map[string]string{"entrypoint.sh": "printf own >ran; sleep 3600"})(&spec)
			return spec
		},
		Visit: func(t testing.TB, cfg extensions.Config, _ extensions.Handle, _ int, address string, header extensions.Header) bool {
			answers, err := vendor.At(dirOf(cfg)).Visit(address, header.Value.Reveal())
			must(t, err)
			return answers
		},
		Settle:  func(t testing.TB, cfg extensions.Config) { must(t, vendor.At(dirOf(cfg)).Advance(saasstub.Lag)) },
		Residue: residue,
		Outside: outside,
		Starts: func(t testing.TB, cfg extensions.Config) int {
			calls, err := vendor.At(dirOf(cfg)).Calls()
			must(t, err)
			return int(calls[vendor.OpCreate])
		},
		User:   "sandbox",
		Excuse: map[string]string{"errors/each-alternative-opens": "one key is enough, so it declares no alternatives"},
	}
}

// files lists all files and folders of the vendor, relative to its folder.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		out = append(out, filepath.ToSlash(rel))
		return err
	}))
	return out
}

// residue is what belongs to sandboxes: the vendor's own books are not counted.
func residue(t testing.TB, cfg extensions.Config) []string {
	var out []string
	for _, f := range files(t, dirOf(cfg)) {
		if strings.Contains(f, "/") || f == "trash" || strings.HasSuffix(f, ".tmp") {
			out = append(out, f)
		}
	}
	return out
}

// outside reads every file that is not inside a sandbox.
func outside(t testing.TB, cfg extensions.Config) []string {
	var out []string
	for _, f := range files(t, dirOf(cfg)) {
		if strings.HasPrefix(f, "sandboxes/") {
			continue
		}
		if b, err := os.ReadFile(filepath.Join(dirOf(cfg), f)); err == nil {
			out = append(out, f+": "+string(b))
		}
	}
	return out
}

func TestConformance(t *testing.T) {
	t.Parallel()
	exttest.Run(t, harness(saasstub.New))
}

func TestConformanceEventual(t *testing.T) {
	t.Parallel()
	exttest.Run(t, harness(saasstub.NewEventual))
}

// One handler bound with another plan is another place, and as honest.
func TestConformanceOfATrialPlan(t *testing.T) {
	t.Parallel()
	h := harness(saasstub.New)
	h.Config = func(t testing.TB) extensions.Config {
		return extensions.Config{Binding: "ext.trial", Account: "acme/web", Values: map[string]any{"dir": t.TempDir(), "plan": "trial"}}
	}
	exttest.Run(t, h)
}
