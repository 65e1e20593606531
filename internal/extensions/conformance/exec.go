package conformance

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func command(argv ...string) extensions.ExecRequest { return extensions.ExecRequest{Command: argv} }

// awkward are words that a shell in between would change.
var awkward = []string{"a b", "'", `"`, ";", "$HOME", "`id`", "$(id)", "new\nline", "tab\t", "é漢🙂", "-rf", "--", "", "*", `\`, "a=b",
	"&& x", "|", ">f", "#c", "!", "~"}

var execChecks = []check{
	{name: "exec/literal-argv", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		var want strings.Builder
		for _, a := range awkward {
			fmt.Fprintf(&want, "<%s>", a)
		}
		res := e.exec(h, command(append([]string{"sh", "-c", `printf '<%s>' "$@"`, "sh"}, awkward...)...))
		equal(e, "arguments of sh -c", res.Stdout, []byte(want.String()))
		res = e.exec(h, command(append([]string{"printf", "<%s>"}, awkward...)...))
		equal(e, "arguments of a program", res.Stdout, []byte(want.String()))
	}},
	{name: "exec/shell", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		res := e.exec(h, extensions.ExecRequest{Shell: `x="a b"; printf '%s' "$x" | cat; printf err >&2; exit 3`})
		equal(e, "stdout", res.Stdout, []byte("a b"))
		equal(e, "stderr", res.Stderr, []byte("err"))
		if res.ExitCode != 3 {
			e.Errorf("exit code %d, want 3", res.ExitCode)
		}
	}},
	{name: "exec/stdin-empty", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		res := e.exec(h, extensions.ExecRequest{Command: []string{"sh", "-c", "cat; printf end"}, Timeout: 20 * time.Second})
		equal(e, "stdout", res.Stdout, []byte("end"))
	}},
	{name: "exec/stdin-1MiB", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		in := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		res := e.exec(h, extensions.ExecRequest{Command: []string{"cat"}, Stdin: bytes.NewReader(in)})
		equal(e, "what cat gave back", res.Stdout, in)
	}},
	{name: "exec/stdin-binary", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		in := make([]byte, 0, 1024)
		for i := range 1024 {
			in = append(in, byte(i*7))
		}
		res := e.exec(h, extensions.ExecRequest{Command: []string{"cat"}, Stdin: bytes.NewReader(in)})
		equal(e, "what cat gave back", res.Stdout, in)
	}},
	{name: "exec/stdin-unread", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		in := bytes.NewReader(make([]byte, 4<<20))
		if res := e.exec(h, extensions.ExecRequest{Command: []string{"true"}, Stdin: in, Timeout: 20 * time.Second}); res.ExitCode != 0 {
			e.Errorf("a command that does not read its input: exit code %d", res.ExitCode)
		}
	}},
	{name: "exec/env", power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready(WithEnv("FROM_SPEC", "spec's"), WithEnv("BOTH", "spec"))
		res := e.exec(h, extensions.ExecRequest{Command: []string{"sh", "-c", `printf '%s|%s|%s' "$FROM_SPEC" "$FROM_REQUEST" "$BOTH"`},
			Env: map[string]string{"FROM_REQUEST": "two\nlines 'quoted' $HOME", "BOTH": "request"}})
		equal(e, "environment", res.Stdout, []byte("spec's|two\nlines 'quoted' $HOME|request"))
	}},
	{name: "exec/env-does-not-stay", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		e.exec(h, extensions.ExecRequest{Command: []string{"true"}, Env: map[string]string{"PASSING": "x"}})
		if got := e.sh(h, `printf '%s' "${PASSING-unset}"`); got != "unset" {
			e.Errorf("a variable of the command before is %q", got)
		}
	}},
	{name: "exec/dir", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, reach := e.ready()
		home := e.sh(h, "mkdir -p sub/folder && pwd")
		if reach.WorkDir != "" && home != reach.WorkDir {
			e.Errorf("commands start in %q, the workspace is %q", home, reach.WorkDir)
		}
		for dir, want := range map[string]string{"": home, "sub/folder": home + "/sub/folder", home + "/sub": home + "/sub", "/": "/"} {
			res := e.exec(h, extensions.ExecRequest{Command: []string{"pwd"}, Dir: dir})
			equal(e, "pwd in "+dir, res.Stdout, []byte(want+"\n"))
		}
	}},
	{name: "exec/dir-missing-runs-nothing", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		res, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Command: []string{"printf", "ran"}, Dir: "no/such/folder"})
		if err == nil && res.ExitCode == 0 || len(res.Stdout) > 0 {
			e.Errorf("a command in a folder that does not exist: exit code %d, %q", res.ExitCode, res.Stdout)
		}
	}},
	{name: "exec/user-unknown-is-unsupported", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		_, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Command: []string{"true"}, User: "no-such-user-here"})
		e.wantKind("exec as a user the place cannot give", err, extensions.KindUnsupported)
	}},
	{name: "exec/user", shares: true, power: extensions.PowerExec, hook: hookNamed("User", func(h Harness) bool { return h.User != "" }),
		run: func(e *env) {
			_, h, _ := e.ready()
			res := e.exec(h, extensions.ExecRequest{Command: []string{"id", "-un"}, User: e.h.User})
			equal(e, "id -un", res.Stdout, []byte(e.h.User+"\n"))
		}},
	{name: "exec/exit-codes", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		for _, code := range []int{0, 1, 7, 126, 255} {
			res := e.exec(h, command("sh", "-c", fmt.Sprintf("exit %d", code)))
			if res.ExitCode != code {
				e.Errorf("exit code %d, want %d", res.ExitCode, code)
			}
		}
	}},
	{name: "exec/signal-is-128-plus-n", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		if res := e.exec(h, command("sh", "-c", "kill -KILL $$")); res.ExitCode != 137 {
			e.Errorf("exit code of a killed command %d, want 137", res.ExitCode)
		}
	}},
	{name: "exec/not-found-127", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		for _, name := range []string{"no-such-program-here", "/no/such/program"} {
			if res := e.exec(h, command(name)); res.ExitCode != 127 || len(res.Stderr) == 0 {
				e.Errorf("%s: exit code %d, stderr %q; want 127 and a reason", name, res.ExitCode, res.Stderr)
			}
		}
	}},
	{name: "exec/not-executable-126", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		path := e.sh(h, `printf x >plain && printf '%s' "$(pwd)/plain"`)
		if res := e.exec(h, command(path)); res.ExitCode != 126 || len(res.Stderr) == 0 {
			e.Errorf("exit code %d, stderr %q; want 126 and a reason", res.ExitCode, res.Stderr)
		}
	}},
	{name: "exec/bad-request-is-invalid", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		for what, req := range map[string]extensions.ExecRequest{
			"nothing":           {},
			"command and shell": {Command: []string{"true"}, Shell: "true"},
			"negative timeout":  {Command: []string{"true"}, Timeout: -time.Second},
			"endless timeout":   {Command: []string{"true"}, Timeout: math.MaxInt64},
			"NUL in argument":   {Command: []string{"printf", "a\x00b"}},
			"bad name in env":   {Command: []string{"true"}, Env: map[string]string{"A=B": "c"}},
			"NUL in env":        {Command: []string{"true"}, Env: map[string]string{"A": "\x00"}},
		} {
			_, err := e.execer().Exec(e.ctx(), h, req)
			e.wantKind(what, err, extensions.KindInvalid)
		}
	}},
	{name: "exec/cut-off-may-have-run", power: extensions.PowerExec,
		hook: hookNamed("CutExec", func(h Harness) bool { return h.CutExec != nil }), run: execCut},
	{name: "exec/gone-is-not-found", shares: true, power: extensions.PowerExec, run: func(e *env) {
		h := e.gone()
		_, err := e.execer().Exec(e.ctx(), h, command("true"))
		e.wantKind("exec in what is gone", err, extensions.KindNotFound)
	}},
}

var insideChecks = []check{
	{name: "inside/workspace-arrives", power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready(WithWorkspace(extensions.AccessRW, map[string]string{"top": "1", "deep/er/file": "content\n"}))
		if got := e.sh(h, "cat top deep/er/file"); got != "1content" {
			e.Errorf("the workspace holds %q", got)
		}
		e.sh(h, "printf new >deep/er/file")
	}},
	{name: "inside/workspace-read-only", power: extensions.PowerExec, run: func(e *env) {
		if !e.desc.Capabilities.ReadOnlyWorkspace {
			return
		}
		_, h, _ := e.ready(WithWorkspace(extensions.AccessRO, map[string]string{"file": "as it was"}))
		e.exec(h, command("sh", "-c", "printf changed >file; printf more >other; rm -f file"))
		if got := e.sh(h, "cat file; test -f other || printf ' and alone'"); got != "as it was and alone" {
			e.Errorf("a read-only workspace was changed: %q", got)
		}
	}},
	{name: "inside/instructions-arrive", power: extensions.PowerExec, run: func(e *env) {
		text := "do this;\n$(never that)\n"
		_, h, _ := e.ready(With(func(s *extensions.Spec) { s.Instructions = text }))
		res := e.exec(h, command("cat", extensions.InstructionsPath))
		equal(e, "instructions", res.Stdout, []byte(text))
	}},
	{name: "inside/sandboxes-are-apart", power: extensions.PowerExec, run: func(e *env) {
		_, a, _ := e.ready()
		_, b, _ := e.ready()
		e.sh(a, "printf a >file")
		if got := e.sh(b, "test -f file && printf seen || printf apart"); got != "apart" {
			e.Error("one sandbox sees the files of another")
		}
	}},
}
