package engine_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

const (
	onLocal = "extends: profile.quickstart\n"
	onStub  = "extension: ext.saas-stub\n" + common
)

// tooled is a bench whose catalog has these files, and profile.t of one text.
func tooled(t *testing.T, text string, files map[string]string) *bench {
	t.Helper()
	if strings.HasPrefix(text, onLocal) {
		startsSandboxes(t)
	}
	all := map[string]string{"profiles/t.yaml": "id: profile.t\nversion: \"1.0.0\"\n" + text}
	maps.Copy(all, files)
	return newBench(t, onFiles(all))
}

func TestTheToolchainRunsInOrderBeforeASandboxIsReady(t *testing.T) {
	t.Parallel()
	kits := map[string]string{
		"kits/b.yaml": "id: kit.base\nversion: \"1.0.0\"\ninstall: [\"echo base-install >> log\"]\npost_acquire: [\"echo base-post >> " +
			"log\"]\nenv: { FROM_KIT: kit }\n",
		"kits/t.yaml": "id: kit.top\nversion: \"1.0.0\"\nrequires: [base]\ninstall: [\"echo top-install >> log\"]\n",
	}
	const tools = "toolchain:\n  kits: [kit.top]\n  install: [\"echo own-install >> log\", \"echo top-install >> log\"]\n" +
		"  post_acquire: [\"echo $OWN $FROM_KIT $TOKEN $(cat seed) >> log\", { run: \"cat log > done\", timeout: 30s }]\n  env: { OWN: own }\n"
	const want = "base-install\ntop-install\nown-install\nbase-post\nown kit hush-hush seeded\n"
	for name, place := range map[string]string{"local": onLocal, "vendor": onStub + "inputs: { repo: { type: string } }\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The probe looks for what the last command makes.
			b := tooled(t, place+tools+"readiness: { command: [test, -f, done], timeout: 5s, interval: 100ms }\n", kits)
			var told []string
			s, err := b.Create(context.Background(),
				engine.Request{Profile: "profile.t", Name: "one", Inputs: map[string]any{"repo": folder(t, map[string]string{"seed": "seeded"})},
					Secrets: map[string]engine.Secret{"TOKEN": extensions.NewSecret("hush-hush")}}, nil,
				func(n engine.Notice) { told = append(told, n.Summary) })
			if err != nil {
				t.Fatal(err)
			}
			if got := b.sh(s.Receipt, "cat done"); got != want {
				t.Errorf("ran %q, want %q", got, want)
			}
			if got := b.sh(s.Receipt, "echo $OWN-$FROM_KIT"); got != "own-kit\n" {
				t.Errorf("environment of a later command: %q", got)
			}
			steps := slices.DeleteFunc(told, func(s string) bool { return !strings.HasPrefix(s, "Running ") })
			if want := []string{"Running install 1 of 3", "Running install 2 of 3", "Running install 3 of 3",
				"Running post_acquire 1 of 3", "Running post_acquire 2 of 3", "Running post_acquire 3 of 3"}; !slices.Equal(steps, want) {
				t.Errorf("told %q", steps)
			}
			b.end(s)
			b.clean()
		})
	}
}

func TestAFailingCommandFailsTheCreateWithItsOutput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tools string
		kind  extensions.Kind
		says  []string
	}{
		"exit code": {"install: [\"true\", \"echo on stdout; echo on stderr >&2; exit 7\"]", extensions.KindFailed,
			[]string{"toolchain.install 2 of 2", "exit code 7", "on stdout\n  on stderr"}},
		"post_acquire": {"post_acquire: [\"no-such-program --flag\"]", extensions.KindFailed,
			[]string{"toolchain.post_acquire 1 of 1", "exit code 127", "no-such-program"}},
		"the end of long output": {"install: [\"i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; exit 3\"]", extensions.KindFailed,
			[]string{"exit code 3", "line 4999"}},
		"secrets and control characters": {"install: [\"printf 'a\\\\033[31m %s\\\\n' $TOKEN; exit 1\"]", extensions.KindFailed,
			[]string{extensions.Redacted}},
		"timeout": {"install: [{ run: \"echo begun; sleep 600\", timeout: 1s }]", extensions.KindTimeout,
			[]string{"toolchain.install 1 of 1", "1s", "begun"}},
	} {
		for where, place := range map[string]string{"local": onLocal, "vendor": onStub} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				b := tooled(t, place+"toolchain: { "+c.tools+" }\n", nil)
				s, err := b.Create(context.Background(), engine.Request{Profile: "profile.t", Name: "one",
					Secrets: map[string]engine.Secret{"TOKEN": extensions.NewSecret("hush-hush")}}, nil, nil)
				if !extensions.IsKind(err, c.kind) || s.ID != "" || extensions.RemedyOf(err) == "" {
					t.Fatalf("%s, %q, remedy %q: %v", extensions.KindOf(err), s.ID, extensions.RemedyOf(err), err)
				}
				for _, w := range c.says {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("does not say %q: %v", w, err)
					}
				}
				if strings.ContainsAny(err.Error(), "\x1b\r") || strings.Contains(err.Error(), "hush-hush") ||
					strings.Contains(err.Error(), "line 4000\n") {
					t.Errorf("says too much: %q", err)
				}
				if left := b.left(); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				b.clean()
			})
		}
	}
}

func TestAFailingCommandIsNoReasonForAnotherPlace(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	e := w.reopen(onFiles(map[string]string{"profiles/p.yaml": "id: profile.tools\nversion: \"1.0.0\"\nextends: profile.two\n" +
		"toolchain: { install: [\"exit 1\"] }\n"}))
	_, err := e.Create(context.Background(), engine.Request{Profile: "profile.tools", Name: "one"}, nil, nil)
	if !extensions.IsKind(err, extensions.KindFailed) || len(w.holds(w.vendor))+len(w.holds(w.dear)) != 0 {
		t.Fatalf("%d and %d are left: %v", len(w.holds(w.vendor)), len(w.holds(w.dear)), err)
	}
	if len(w.holds(w.dear)) != 0 {
		t.Error("the second place was asked")
	}
	// What is the place's own failure is another matter.
	w.script(saasstub.Rule{Op: vendor.OpExec, Do: vendor.DoUnavailable})
	_, err = e.Create(context.Background(), engine.Request{Profile: "profile.tools", Name: "one"}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "ext.second") || len(w.holds(w.vendor))+len(w.holds(w.dear)) != 0 {
		t.Errorf("the second place was not asked: %v", err)
	}
}

func TestACancelledCreateEndsTheRunningCommand(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]string{"local": onLocal, "vendor": onStub} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := tooled(t, place+"toolchain: { install: [\"sleep 600\"] }\n", nil)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			begun := time.Now()
			s, err := b.Create(ctx, engine.Request{Profile: "profile.t", Name: "one"}, nil, func(n engine.Notice) {
				if strings.HasPrefix(n.Summary, "Running install") {
					time.AfterFunc(300*time.Millisecond, cancel)
				}
			})
			if !extensions.IsKind(err, extensions.KindInterrupted) || s.ID != "" || time.Since(begun) > 5*time.Minute {
				t.Errorf("%q after %s: %v", s.ID, time.Since(begun), err)
			}
			if left := b.left(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			b.clean()
		})
	}
}

func TestWhatARunThatDiedInACommandLeftIsCleanedUp(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]string{"local": onLocal, "vendor": onStub} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := tooled(t, place+"toolchain: { install: [\"sleep 600\"] }\n", nil)
			cmd := b.driver(order{Profile: "profile.t", Do: "create", Name: "one"})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(time.Minute); len(b.left()) == 0 && time.Now().Before(end); {
				time.Sleep(50 * time.Millisecond)
			}
			time.Sleep(500 * time.Millisecond) // the command lasts ten minutes
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if len(b.left()) != 1 {
				t.Fatalf("there is %v", b.left())
			}
			if err := b.Recover(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			if left := b.left(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			b.clean()
		})
	}
}

func TestASandboxMadeAnewOrRestoredIsEquippedAgain(t *testing.T) {
	t.Parallel()
	b := tooled(t, onLocal+"toolchain: { install: [\"echo tool > $HOME/tool\"], post_acquire: [\"echo post >> log\"] }\n", nil)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.t", Name: "one"})
	b.sh(s.Receipt, "rm $HOME/tool")
	snap, err := b.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	// A snapshot of the workspace alone brings no tools along.
	restored := b.create(engine.Request{Profile: "profile.t", Name: "two", FromSnapshot: snap.ID})
	if got := b.sh(restored.Receipt, "cat $HOME/tool log"); got != "tool\npost\npost\n" {
		t.Errorf("restored: %q", got)
	}
	again, err := b.Recreate(ctx, s.Receipt, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.sh(again.Receipt, "cat $HOME/tool log"); got != "tool\npost\n" {
		t.Errorf("made anew: %q", got)
	}
	b.sh(again.Receipt, "rm $HOME/tool")
	adopted := b.create(engine.Request{Profile: "profile.t", Name: "one", OnConflict: "adopt"})
	if got := b.sh(adopted.Receipt, "ls $HOME/tool 2>/dev/null; cat log"); got != "post\n" {
		t.Errorf("adopted: %q", got)
	}
	if _, err := b.DeleteSnapshot(ctx, snap, false); err != nil {
		t.Error(err)
	}
	b.end(adopted, restored)
	b.clean()
}

func TestAChangedKitIsAnotherSpecification(t *testing.T) {
	t.Parallel()
	kit := func(what string) string { return "id: kit.k\nversion: \"1.0.0\"\ninstall: [\"echo " + what + "\"]\n" }
	b := tooled(t, onStub+"toolchain: { kits: [kit.k] }\n", map[string]string{"kits/k.yaml": kit("one")})
	ctx := context.Background()
	req := engine.Request{Profile: "profile.t", Name: "one"}
	s := b.create(req)
	if ns, err := b.PlanUpdate(ctx, s.Receipt, req, req); err != nil || len(ns) > 0 {
		t.Errorf("unchanged: %v %v", ns, err)
	}
	if err := os.WriteFile(filepath.Join(b.catalog, "kits", "k.yaml"), []byte(kit("two")), 0o600); err != nil {
		t.Fatal(err)
	}
	if ns, err := b.reopen().PlanUpdate(ctx, s.Receipt, req, req); err != nil || len(ns) != 1 ||
		!strings.Contains(ns[0].Summary, "profile has changed") {
		t.Errorf("changed: %v %v", ns, err)
	}
}

func TestWhatACommandPrintedIsKeptNowhere(t *testing.T) {
	t.Parallel()
	b := tooled(t, onStub+"toolchain: { install: [\"echo some-output; exit 1\"] }\n", nil)
	b.script(saasstub.Rule{Op: vendor.OpDelete, Do: vendor.DoInvalid})
	ctx := context.Background()
	s, err := b.Create(ctx, engine.Request{Profile: "profile.t", Name: "one"}, nil, nil)
	if s.ID == "" || err == nil || !strings.Contains(err.Error(), "some-output") {
		t.Fatalf("%q: %v", s.ID, err)
	}
	kept, jerr := json.Marshal(s)
	if jerr != nil || strings.Contains(string(kept), "printed") || !strings.Contains(string(kept), "exit code 1") {
		t.Errorf("kept: %s", kept)
	}
	// Its own command says the words, and nothing that was printed does.
	if n := strings.Count(string(kept), "some-output"); n != strings.Count(string(kept), "echo some-output") {
		t.Errorf("the output is kept: %s", kept)
	}
	b.script()
	b.end(s)
	b.clean()
}

// What is started in the background stays, as a server that the readiness
// probe asks for.
func TestWhatACommandStartsInTheBackgroundStays(t *testing.T) {
	t.Parallel()
	b := tooled(t, onLocal+"toolchain: { post_acquire: [\"sleep 300 & echo $! >pid\"] }\nreadiness: { command: [sh, -c, \"kill -0 $(cat "+
		"pid)\"], timeout: 5s }\n", nil)
	begun := time.Now()
	s := b.create(engine.Request{Profile: "profile.t", Name: "one"})
	if took := time.Since(begun); took > 2*time.Minute {
		t.Errorf("the command held the create for %s", took)
	}
	b.sh(s.Receipt, "kill -0 $(cat pid)")
	b.end(s)
	b.clean()
}
