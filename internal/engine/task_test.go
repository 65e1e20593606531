package engine_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func TestATaskIsJudgedByItsExitCode(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	ctx := context.Background()
	s := w.create(engine.Request{Profile: "profile.two", Name: "one"})
	shell := func(script string) engine.Task { return engine.Task{ExecRequest: engine.ExecRequest{Shell: script}} }
	for name, c := range map[string]struct {
		task     engine.Task
		expected []int
		kind     extensions.Kind
		code     int
		says     string
	}{
		"done":            {task: shell("true")},
		"unexpected":      {task: shell("echo the cause >&2; exit 3"), kind: extensions.KindFailed, code: 3, says: "exit code 3"},
		"its output":      {task: shell("echo the cause >&2; exit 3"), kind: extensions.KindFailed, code: 3, says: "the cause"},
		"expected":        {task: shell("exit 3"), expected: []int{0, 3}, code: 3},
		"0 is not":        {task: shell("true"), expected: []int{3}, kind: extensions.KindFailed, says: "exit code 0"},
		"no such program": {task: engine.Task{ExecRequest: engine.ExecRequest{Command: []string{"nosuch"}}}, kind: extensions.KindFailed, code: 127},
		"both, and secret": {task: engine.Task{ExecRequest: engine.ExecRequest{Shell: "true", Env: map[string]string{"A": "x"}},
			Secrets: map[string]extensions.Secret{"A": extensions.NewSecret("y")}}, kind: extensions.KindInvalid, says: "A is set both as a variable and as a secret"},
	} {
		c.task.Expected = c.expected
		res, err := w.Perform(ctx, s.Receipt, c.task)
		if extensions.KindOf(err) != c.kind || res.ExitCode != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: exit code %d, %s: %v", name, res.ExitCode, extensions.KindOf(err), err)
		}
		if ran := c.kind != extensions.KindInvalid; res.Began != ran || res.Ended != ran {
			t.Errorf("%s: began %v, ended %v", name, res.Began, res.Ended)
		}
	}
	w.clean()
}

func TestATaskThatDoesNotEndByItselfIsToldApart(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	s := w.create(engine.Request{Profile: "profile.two", Name: "one"})
	slow := engine.Task{ExecRequest: engine.ExecRequest{Shell: "echo begun; sleep 600", Timeout: 300 * time.Millisecond}}
	res, err := w.Perform(context.Background(), s.Receipt, slow)
	if !extensions.IsKind(err, extensions.KindTimeout) || !res.Began || res.Ended || !strings.Contains(err.Error(), "begun") {
		t.Errorf("its time passed: %+v, %v", res, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopped := engine.Task{ExecRequest: engine.ExecRequest{Shell: "echo begun; sleep 600"}, Line: func(string) { cancel() }}
	res, err = w.Perform(ctx, s.Receipt, stopped)
	if !extensions.IsKind(err, extensions.KindInterrupted) || !res.Began || res.Ended {
		t.Errorf("interrupted: %+v, %v", res, err)
	}
	for do, kind := range map[vendor.Action]extensions.Kind{vendor.DoLoseAnswer: extensions.KindIndeterminate,
		vendor.DoUnreachable: extensions.KindUnreachable} {
		w.does(w.vendor, saasstub.Rule{Op: vendor.OpExec, Do: do, Times: 1})
		res, err = w.Perform(context.Background(), s.Receipt, engine.Task{ExecRequest: engine.ExecRequest{Shell: "true"}})
		if !extensions.IsKind(err, kind) || res.Began != (kind == extensions.KindIndeterminate) || res.Ended {
			t.Errorf("%s: %+v, %v", do, res, err)
		}
		w.does(w.vendor)
	}
	w.clean()
}

// What a command prints is told as it comes, and kept as far as was asked; its own secrets are in neither.
func TestATaskTellsAndKeepsWhatIsPrintedWithoutItsSecrets(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	s := w.create(engine.Request{Profile: "profile.two", Name: "one"})
	key := "-----BEGIN KEY-----\nhush-one\nhush-two\n-----END KEY-----"
	var lines []string
	task := engine.Task{
		ExecRequest: engine.ExecRequest{Shell: `printf 'one\r50%%\rtwo\n'; printf '\033[31m%s\033[0m\n' "$KEY"; printf ä; printf last; exit 4`,
			Env: map[string]string{"PLAIN": "x"}},
		Secrets: map[string]extensions.Secret{"KEY": extensions.NewSecret(key)}, Keep: 1 << 10, Line: func(l string) { lines = append(lines, l) },
	}
	res, err := w.Perform(context.Background(), s.Receipt, task)
	if !slices.Contains(lines, "two") || !slices.Contains(lines, "älast") || len(lines) != 6 {
		t.Errorf("the lines are %q", lines)
	}
	if text := string(res.Stdout); !strings.HasSuffix(text, "älast") || res.StdoutTruncated {
		t.Errorf("it kept %q", text)
	}
	for _, text := range append(lines, string(res.Stdout), err.Error()) {
		if strings.Contains(text, "hush") || strings.Contains(text, "KEY--") {
			t.Errorf("a secret is in %q", text)
		}
	}
	task.Keep = len("one\r50%\rtwo\n\x1b[31m") + len(extensions.Redacted) + len("\x1b[0m\n") + 1 // one byte of ä
	res, _ = w.Perform(context.Background(), s.Receipt, task)
	if !res.StdoutTruncated || bytes.Contains(res.Stdout, []byte{0xc3}) || !bytes.HasSuffix(res.Stdout, []byte("\n")) {
		t.Errorf("cut, it is %q", res.Stdout)
	}
	task.Keep = 0
	if res, _ = w.Perform(context.Background(), s.Receipt, task); len(res.Stdout) > 0 {
		t.Errorf("kept unasked: %q", res.Stdout)
	}
	w.clean()
}

// A sandbox's own secrets are hidden in what a command printed: by the run that made it, and by a later one, which asks
// the sandbox. Where they stay unknown, nothing is told.
func TestWhatATaskTellsHasNoneOfItsSandboxesSecrets(t *testing.T) {
	t.Parallel()
	for as, read := range map[string]string{"env": `echo "it is $TOKEN"`, "file": `printf 'it is '; cat /run/secrets/TOKEN; echo`} {
		t.Run(as, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, onFiles(map[string]string{
				"profiles/profile.secretive.yaml": profile("profile.secretive", "extension: ext.saas-stub\nsecrets_as: "+as+"\n")}))
			s := b.create(engine.Request{Profile: "profile.secretive", Name: "one", Secrets: map[string]engine.Secret{
				"OTHER": extensions.NewSecret("more-hush"), "TOKEN": extensions.NewSecret("hush-one\nhush-two")}})
			for name, e := range map[string]*engine.Engine{"its own run": b.Engine, "a later run": b.reopen(), "another ledger": b.elsewhere()} {
				var lines []string
				res, err := e.Perform(context.Background(), s.Receipt, engine.Task{ExecRequest: engine.ExecRequest{Shell: read + "; exit 3"},
					Keep: 1 << 10, Line: func(l string) { lines = append(lines, l) }})
				if !extensions.IsKind(err, extensions.KindFailed) || res.ExitCode != 3 {
					t.Fatalf("%s: %+v, %v", name, res, err)
				}
				text := err.Error() + strings.Join(lines, "\n")
				if strings.Contains(text, "hush") {
					t.Errorf("%s: a secret is in %s", name, text)
				}
				if known := name != "another ledger"; known != strings.Contains(err.Error(), "it is [redacted]") || known == (len(lines) == 0) ||
					known == strings.Contains(err.Error(), "is not shown") || known == strings.Contains(string(res.Stdout), "hush") {
					t.Errorf("%s: %v, lines %q, kept %q", name, err, lines, res.Stdout)
				}
			}
			b.end(s)
			b.clean()
		})
	}
}
