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
			Secrets: map[string]extensions.Secret{"A": extensions.NewSecret("y")}}, kind: extensions.KindInvalid, says: "A is a variable and a secret"},
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
