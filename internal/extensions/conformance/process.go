package conformance

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var execProcessChecks = []check{
	{name: "exec/timeout-is-timeout", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		begun := time.Now()
		res, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Command: []string{"sh", "-c", "printf early; sleep 60"},
			Timeout: time.Second})
		e.wantKind("a command over its time", err, extensions.KindTimeout)
		equal(e, "what was captured before", res.Stdout, []byte("early"))
		if took := time.Since(begun); took > 20*time.Second {
			e.Errorf("the call took %s for a time limit of 1 s", took)
		}
	}},
	{name: "exec/timeout-kills-the-group", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		script := `(trap '' TERM HUP INT; while :; do printf x >>beat; sleep 0.1; done) & sleep 60`
		_, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Command: []string{"sh", "-c", script}, Timeout: time.Second})
		e.wantKind("a command over its time", err, extensions.KindTimeout)
		first := e.sh(h, "cat beat")
		time.Sleep(600 * time.Millisecond)
		if second := e.sh(h, "cat beat"); first == "" || second != first {
			e.Errorf("a child of the killed command still runs: %d beats, then %d", len(first), len(second))
		}
	}},
	{name: "exec/timeout-leaves-it-usable", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		_, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Command: []string{"sleep", "60"}, Timeout: 300 * time.Millisecond})
		e.wantKind("a command over its time", err, extensions.KindTimeout)
		e.wantPhase(h, extensions.PhaseReady)
		if got := e.sh(h, "printf ok"); got != "ok" {
			e.Errorf("the next command printed %q", got)
		}
	}},
	{name: "exec/grandchild-holds-stdout", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		begun := time.Now()
		res := e.exec(h, extensions.ExecRequest{Command: []string{"sh", "-c", "sleep 40 & printf done"}, Timeout: 30 * time.Second})
		equal(e, "stdout", res.Stdout, []byte("done"))
		if took := time.Since(begun); took > e.h.limit() {
			e.Errorf("the call took %s, held by a grandchild", took)
		}
	}},
	{name: "exec/output-capped", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		in := bytes.Repeat([]byte("0123456789abcde\n"), 3<<16)
		var live bytes.Buffer
		res := e.exec(h, extensions.ExecRequest{Command: []string{"cat"}, Stdin: bytes.NewReader(in), Stdout: &live})
		if !res.StdoutTruncated || res.StderrTruncated {
			e.Errorf("truncated: stdout %t, stderr %t; want stdout only", res.StdoutTruncated, res.StderrTruncated)
		}
		equal(e, "captured", res.Stdout, in[:extensions.MaxExecOutput])
		equal(e, "live", live.Bytes(), in)
	}},
	{name: "exec/output-whole-is-not-marked", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		in := bytes.Repeat([]byte("x"), extensions.MaxExecOutput)
		res := e.exec(h, extensions.ExecRequest{Command: []string{"cat"}, Stdin: bytes.NewReader(in)})
		if res.StdoutTruncated || len(res.Stdout) != len(in) {
			e.Errorf("%d bytes of exactly %d, marked as cut: %t", len(res.Stdout), len(in), res.StdoutTruncated)
		}
	}},
	{name: "exec/streams-apart-and-live", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		var out, errs bytes.Buffer
		res := e.exec(h, extensions.ExecRequest{Command: []string{"sh", "-c", "printf one; printf two >&2"}, Stdout: &out, Stderr: &errs})
		if res.Merged {
			equal(e, "merged output", res.Stdout, []byte("onetwo"))
			return
		}
		equal(e, "stdout", res.Stdout, []byte("one"))
		equal(e, "stderr", res.Stderr, []byte("two"))
		equal(e, "live stdout", out.Bytes(), []byte("one"))
		equal(e, "live stderr", errs.Bytes(), []byte("two"))
	}},
	{name: "exec/tty-merges", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		res, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Command: []string{"sh", "-c", "printf one; printf two >&2"},
			TTY: &extensions.TTY{Rows: 24, Cols: 80}})
		if extensions.IsKind(err, extensions.KindUnsupported) {
			return
		}
		if err != nil {
			e.Fatalf("exec with a terminal: %v", err)
		}
		if !res.Merged || len(res.Stderr) != 0 {
			e.Errorf("merged %t, stderr %q", res.Merged, res.Stderr)
		}
		equal(e, "the terminal's output", res.Stdout, []byte("onetwo"))
	}},
	{name: "exec/cancel-ends-it", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		begun := time.Now()
		if _, err := e.execer().Exec(ctx, h, command("sleep", "60")); err == nil {
			e.Error("a command whose call was given up succeeded")
		}
		if took := time.Since(begun); took > e.h.limit() {
			e.Errorf("the call took %s after it was given up", took)
		}
	}},
	{name: "exec/cancelled-starts-nothing", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		if _, err := e.execer().Exec(cancelled(), h, command("sh", "-c", "printf x >started")); err == nil {
			e.Error("exec with a cancelled context succeeded")
		}
		if got := e.sh(h, "test -f started && printf yes || printf no"); got != "no" {
			e.Error("exec with a cancelled context ran the command")
		}
	}},
	{name: "exec/50-parallel", shares: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready()
		x := e.execer()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				want := fmt.Sprintf("<%d>", i)
				res, err := x.Exec(e.ctx(), h, extensions.ExecRequest{Command: []string{"sh", "-c", `read x; printf '<%s>' "$x"`},
					Stdin: strings.NewReader(fmt.Sprintf("%d\n", i))})
				if err != nil || string(res.Stdout) != want {
					e.Errorf("command %d: %q, %v", i, res.Stdout, err)
				}
			})
		}
		wg.Wait()
	}},
}
