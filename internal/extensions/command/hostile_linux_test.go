package command_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/command"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// hostile is a program of sh, whose verb is $1 and whose request is $request. Its folder is $here.
const hostile = "#!/bin/sh\nPATH=/usr/bin:/bin\nhere=${0%/*}\nIFS= read -r request\n"

func open(t *testing.T, cfg extensions.Config) extensions.Backend {
	t.Helper()
	b, err := command.New().Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func wantKind(t *testing.T, what string, err error, kind extensions.Kind, says string) {
	t.Helper()
	if !extensions.IsKind(err, kind) || err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %s %v, want %s that says %q", what, extensions.KindOf(err), err, kind, says)
	}
}

// What a program says is taken as it is meant, or not at all: what may have changed something is then unknown, and what
// only looked is a broken program.
func TestAnAnswerThatCannotBeUnderstoodIsRefused(t *testing.T) {
	t.Parallel()
	ours := `{"ref":"r","labels":{"sandboxer.id":"$id","sandboxer.account":"acme/web"},"phase":"ready","workdir":"/w"`
	id := `id=$(printf '%s' "$request" | grep -o '"id":"[^"]*"' | head -n 1 | cut -d'"' -f4); `
	for name, body := range map[string]string{
		"nothing":             `exit 0`,
		"words":               `echo hello`,
		"half":                `printf '{"contract":1,'`,
		"another contract":    `echo '{"contract":2,"sandboxes":[]}'`,
		"an unknown member":   `echo '{"contract":1,"sandboxes":[],"more":1}'`,
		"two answers":         `echo '{"contract":1,"sandboxes":[]} {"contract":1,"sandboxes":[]}'`,
		"another verb's":      `echo '{"contract":1,"usage":{}}'`,
		"both":                `echo '{"contract":1,"sandboxes":[],"error":{"kind":"conflict","message":"x"}}'`,
		"an unknown kind":     `echo '{"contract":1,"error":{"kind":"sulk","message":"x"}}'`,
		"no kind of the verb": `echo '{"contract":1,"error":{"kind":"not_found","message":"x"}}'`,
		"no message":          `echo '{"contract":1,"error":{"kind":"unavailable","message":""}}'`,
		"a failed exit":       id + `echo "{\"contract\":1,\"sandboxes\":[` + strings.ReplaceAll(ours, `"`, `\"`) + `}]}"; exit 3`,
		"another's":           `echo '{"contract":1,"sandboxes":[` + strings.ReplaceAll(ours, "$id", "sbx-aaaaaaaaaaaaaaaaaaaa") + `}]}'`,
		"an unknown phase":    id + `echo "{\"contract\":1,\"sandboxes\":[` + strings.ReplaceAll(strings.Replace(ours, "ready", "fine", 1), `"`, `\"`) + `}]}"`,
		"a flood":             `yes '{"contract":1}'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(program(t, hostile+body+"\n"), python, t.TempDir())
			b := open(t, cfg)
			spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Network.Default = "allow" }))
			h, _, err := b.Provision(t.Context(), spec)
			wantKind(t, "provision", err, extensions.KindIndeterminate, "")
			if h.ID != spec.ID || h.Ref != "" {
				t.Errorf("the sandbox may exist, and the handle is %s", h.Encode())
			}
			_, err = b.Find(t.Context(), spec.ID)
			wantKind(t, "find", err, extensions.KindInternal, "")
		})
	}
}

func TestAHungProgramIsKilledWithItsGroup(t *testing.T) {
	t.Parallel()
	cfg := config(program(t, hostile+"sleep 300 & echo $! >>\"$here/pids\"; echo $$ >>\"$here/pids\"; wait\n"), python, t.TempDir())
	cfg.Values["timeout"] = "1s"
	b := open(t, cfg)
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Network.Default = "allow" }))
	h, _, err := b.Provision(t.Context(), spec)
	wantKind(t, "provision", err, extensions.KindIndeterminate, "longer than 1s")
	if h.IsZero() {
		t.Error("the sandbox may exist, and there is no handle")
	}
	_, err = b.Find(t.Context(), spec.ID)
	wantKind(t, "find", err, extensions.KindUnreachable, "longer than 1s")
	pids, err := os.ReadFile(filepath.Join(filepath.Dir(cfg.AllowedCommands[0]), "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(pids)) {
		if pid, _ := strconv.Atoi(line); !gone(pid) {
			t.Errorf("the process %d still runs", pid)
		}
	}
}

// gone waits until a process has ended, even if nobody has fetched its exit code.
func gone(pid int) bool {
	for range 200 {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

func TestAGrandchildThatHoldsTheStreamsHoldsNobody(t *testing.T) {
	t.Parallel()
	cfg := config(program(t, hostile+"sleep 300 & echo $! >\"$here/pid\"; echo '{\"contract\":1,\"sandboxes\":[]}'\n"), python, t.TempDir())
	_, err := open(t, cfg).Find(t.Context(), "sbx-aaaaaaaaaaaaaaaaaaaa")
	wantKind(t, "find", err, extensions.KindNotFound, "")
	text, err := os.ReadFile(filepath.Join(filepath.Dir(cfg.AllowedCommands[0]), "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if pid, _ := strconv.Atoi(strings.TrimSpace(string(text))); !gone(pid) {
		t.Errorf("the process %d still runs", pid)
	}
}

func TestAnExecThatBreaksOffIsIndeterminate(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no result":        `printf 'o\000\000\000\002hi'`,
		"half a frame":     `printf 'o\000\000\000\011hi'`,
		"no frames":        `echo '{"contract":1,"error":{"kind":"not_found","message":"x"}}'`,
		"an unknown frame": `printf 'q\000\000\000\000'`,
		"an odd result":    `printf 'x\000\000\000\002{}'`,
		"a dead program":   `kill -9 $$`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(program(t, hostile+body+"\n"), python, t.TempDir())
			h := extensions.Handle{Extension: command.Handler, Version: 1, ID: "sbx-aaaaaaaaaaaaaaaaaaaa", Ref: "r", Data: []byte(`{"digest":"","workdir":"/"}`)}
			_, err := open(t, cfg).(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"true"}})
			wantKind(t, "exec", err, extensions.KindIndeterminate, "")
		})
	}
}

// The request comes on stdin alone: no argument and no variable has any of it.
func TestAProgramSeesItsVerbAndNothingElseOutsideItsInput(t *testing.T) {
	t.Parallel()
	cfg := config(program(t, hostile+`tr '\000' '\n' </proc/$$/environ >"$here/environ"; echo "$@" >"$here/arguments"; echo '{"contract":1,"sandboxes":[]}'`+"\n"),
		python, t.TempDir())
	cfg.Credentials = map[string]extensions.Secret{"token": extensions.NewSecret("a-secret-token")}
	if all, err := open(t, cfg).Status(t.Context(), nil); err != nil || len(all) != 0 {
		t.Fatalf("%v, %v", all, err)
	}
	for file, want := range map[string]string{"environ": "", "arguments": "status\n"} {
		if got, err := os.ReadFile(filepath.Join(filepath.Dir(cfg.AllowedCommands[0]), file)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
}

func TestAProgramThatOthersCouldHaveWrittenIsRefused(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, dir, file string) string{
		"a writable file": func(t *testing.T, _, file string) string { return chmod(t, file, 0o702) },
		"a group's file":  func(t *testing.T, _, file string) string { return chmod(t, file, 0o720) },
		"no program":      func(t *testing.T, _, file string) string { return chmod(t, file, 0o600) },
		"a writable folder": func(t *testing.T, dir, file string) string {
			chmod(t, dir, 0o777)
			return file
		},
		"a link to a writable file": func(t *testing.T, dir, file string) string {
			return link(t, chmod(t, file, 0o777), filepath.Join(dir, "link"))
		},
		"a link through a writable folder": func(t *testing.T, dir, file string) string {
			open := filepath.Join(dir, "open")
			if err := os.Mkdir(open, 0o700); err != nil {
				t.Fatal(err)
			}
			to := link(t, file, filepath.Join(open, "inner"))
			chmod(t, open, 0o777)
			return link(t, to, filepath.Join(dir, "outer"))
		},
		"a folder": func(_ *testing.T, dir, _ string) string { return dir },
		"a loop": func(t *testing.T, dir, _ string) string {
			return link(t, filepath.Join(dir, "loop"), filepath.Join(dir, "loop"))
		},
		"not there":          func(_ *testing.T, dir, _ string) string { return filepath.Join(dir, "nothing") },
		"a relative":         func(*testing.T, string, string) string { return "program" },
		"a file as a folder": func(_ *testing.T, _, file string) string { return filepath.Join(file, "below") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := program(t, hostile)
			path := prepare(t, filepath.Dir(file), file)
			_, err := command.New().Open(t.Context(), config(path, python, t.TempDir()))
			if !extensions.IsKind(err, extensions.KindUnauthorized) && !extensions.IsKind(err, extensions.KindInvalid) {
				t.Errorf("%v", err)
			}
		})
	}
	sticky := filepath.Join(t.TempDir(), "sticky")
	if err := os.Mkdir(sticky, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(sticky, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	at := link(t, program(t, hostile), filepath.Join(sticky, "link"))
	if _, err := command.New().Open(t.Context(), config(at, python, t.TempDir())); err != nil {
		t.Errorf("a link of our own in a sticky folder: %v", err)
	}
	if syscall.Geteuid() == 0 {
		if err := os.Lchown(at, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		_, err := command.New().Open(t.Context(), config(at, python, t.TempDir()))
		wantKind(t, "another's link in a sticky folder", err, extensions.KindUnauthorized, "belongs to another user")
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, to, at string) string {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestAProgramThatNobodyAllowedIsNeitherOpenedNorPlanned(t *testing.T) {
	t.Parallel()
	cfg := config(program(t, hostile+"touch \"$here/ran\"\n"), python, t.TempDir())
	path := cfg.AllowedCommands[0]
	check := command.New().(extensions.SpecChecker)
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Network.Default = "allow" }))
	if _, err := check.CheckSpec(t.Context(), cfg, spec); err != nil {
		t.Errorf("allowed: %v", err)
	}
	cfg.AllowedCommands = []string{path + "x", filepath.Dir(path)}
	_, err := check.CheckSpec(t.Context(), cfg, spec)
	wantKind(t, "check", err, extensions.KindUnauthorized, "is not allowed")
	_, err = command.New().Open(t.Context(), cfg)
	wantKind(t, "open", err, extensions.KindUnauthorized, "is not allowed")
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "ran")); err == nil {
		t.Error("the program ran")
	}
}

func TestAProgramThatChangedIsTold(t *testing.T) {
	t.Parallel()
	path := example(t, "shell/sandbox.sh")
	cfg := config(path, shell, t.TempDir())
	b := open(t, cfg)
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Network.Default = "allow" }))
	h, _, err := b.Provision(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = b.Teardown(t.Context(), h) })
	look := func() extensions.Observation {
		all, err := b.Status(t.Context(), []extensions.Handle{h})
		if err != nil || all[0].Phase != extensions.PhaseReady || all[0].Handle.Encode() != h.Encode() {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0]
	}
	if o := look(); o.Reason != "" {
		t.Errorf("nothing changed, and %q", o.Reason)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("# changed\n")
	if closed := f.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	if o := look(); !strings.Contains(o.Reason, "has changed since it was created") {
		t.Errorf("the program changed, and the reason is %q", o.Reason)
	}
	if _, err := b.Teardown(t.Context(), h); err != nil {
		t.Error(err)
	}
}

func TestAManifestDeclaresOnlyWhatThereIs(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]any{
		"nothing":               nil,
		"no map":                "exec",
		"an unknown word":       map[string]any{"contract": 1, "isolation_levels": []any{"none"}, "power": "exec"},
		"another contract":      map[string]any{"contract": 2, "isolation_levels": []any{"none"}},
		"no isolation":          map[string]any{"contract": 1},
		"an unknown isolation":  map[string]any{"contract": 1, "isolation_levels": []any{"bunker"}},
		"a power it cannot be":  map[string]any{"contract": 1, "isolation_levels": []any{"none"}, "powers": []any{"snapshot"}},
		"files without exec":    map[string]any{"contract": 1, "isolation_levels": []any{"none"}, "powers": []any{"files"}},
		"extend in words only":  map[string]any{"contract": 1, "isolation_levels": []any{"none"}, "extend_ttl": "both"},
		"extend and no extend":  map[string]any{"contract": 1, "isolation_levels": []any{"none"}, "powers": []any{"extend"}, "extend_ttl": "none"},
		"settle of strong find": map[string]any{"contract": 1, "isolation_levels": []any{"none"}, "find": "strong", "settle": "3s"},
		"no settle":             map[string]any{"contract": 1, "isolation_levels": []any{"none"}, "find": "eventual"},
		"a claim nobody ends": map[string]any{"contract": 1, "isolation_levels": []any{"none"}, "find": "eventual", "settle": "3s", "claim": "1m",
			"expiry": "sweep", "powers": []any{"extend"}},
		"names without ports": map[string]any{"contract": 1, "isolation_levels": []any{"none"}, "egress": "everything"},
		"a price it invents":  map[string]any{"contract": 1, "isolation_levels": []any{"none"}, "pricing_model": "free"},
	} {
		_, err := extensions.Declared(command.New(), map[string]any{"command": "/x", "manifest": m})
		wantKind(t, name, err, extensions.KindInvalid, "")
	}
	d, err := extensions.Declared(command.New(), map[string]any{"command": "/x", "manifest": map[string]any{"contract": 1, "find": "eventual",
		"isolation_levels": []any{"microvm"}, "settle": "3s", "claim": "1m", "expiry": "native", "powers": []any{"exec", "extend", "usage"}}})
	if err != nil || d.Find.Claim != time.Minute || d.Capabilities.ExtendTTL != extensions.ExtendBoth || d.Has(extensions.PowerFiles) ||
		d.Capabilities.SelfHosted() != true || d.Capabilities.Egress != extensions.EgressNone {
		t.Errorf("%+v, %v", d, err)
	}
}
