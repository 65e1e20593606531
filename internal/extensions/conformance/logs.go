package conformance

import (
	"bufio"
	"context"
	"io"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var logChecks = []check{
	{name: "logs/show-lines", shares: true, power: extensions.PowerLogs, run: func(e *env) {
		_, h, _ := e.ready()
		e.log(h, "first line")
		e.log(h, "second line")
		all := e.logs(h, extensions.LogRequest{})
		first, second := strings.Index(all, "first line"), strings.Index(all, "second line")
		if first < 0 || second < first {
			e.Errorf("the log is %q, want both lines in order", all)
		}
	}},
	{name: "logs/tail", shares: true, power: extensions.PowerLogs, run: func(e *env) {
		_, h, _ := e.ready()
		for _, l := range []string{"one", "two", "three"} {
			e.log(h, l)
		}
		got := e.logs(h, extensions.LogRequest{Tail: 1})
		if !strings.Contains(got, "three") || strings.Contains(got, "two") {
			e.Errorf("the last line is %q, want the third only", got)
		}
	}},
	{name: "logs/follow", shares: true, power: extensions.PowerLogs, run: func(e *env) {
		_, h, _ := e.ready()
		e.log(h, "before")
		r, err := power[extensions.LogStreamer](e, e.b).Logs(e.ctx(), h, extensions.LogRequest{Follow: true})
		if err != nil {
			e.Fatalf("logs: %v", err)
		}
		defer func() { _ = r.Close() }()
		lines := make(chan string, 16)
		go func() {
			defer close(lines)
			for s := bufio.NewScanner(r); s.Scan(); {
				lines <- s.Text()
			}
		}()
		e.awaitLine(lines, "before")
		e.log(h, "after")
		e.awaitLine(lines, "after")
	}},
	{name: "logs/cancel-ends-follow", shares: true, power: extensions.PowerLogs, run: func(e *env) {
		_, h, _ := e.ready()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		r, err := power[extensions.LogStreamer](e, e.b).Logs(ctx, h, extensions.LogRequest{Follow: true})
		if err != nil {
			e.Fatalf("logs: %v", err)
		}
		done := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, r)
			close(done)
		}()
		cancel()
		select {
		case <-done:
		case <-time.After(e.h.limit()):
			e.Error("the stream goes on after its context was cancelled")
		}
		_ = r.Close()
	}},
	{name: "logs/gone-is-not-found", shares: true, power: extensions.PowerLogs, run: func(e *env) {
		h := e.gone()
		r, err := power[extensions.LogStreamer](e, e.b).Logs(e.ctx(), h, extensions.LogRequest{})
		if err == nil {
			_ = r.Close()
		}
		e.wantKind("logs of what is gone", err, extensions.KindNotFound)
	}},
}

func (e *env) log(h extensions.Handle, line string) {
	e.Helper()
	if e.h.Log != nil {
		e.h.Log(e.TB, e.b, h, line)
		return
	}
	e.exec(h, command("printf", "%s\n", line))
}

func (e *env) logs(h extensions.Handle, req extensions.LogRequest) string {
	e.Helper()
	r, err := power[extensions.LogStreamer](e, e.b).Logs(e.ctx(), h, req)
	if err != nil {
		e.Fatalf("logs: %v", err)
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(r)
	if err != nil {
		e.Fatalf("reading logs: %v", err)
	}
	return string(b)
}

func (e *env) awaitLine(lines <-chan string, want string) {
	e.Helper()
	limit := time.After(e.h.limit())
	for {
		select {
		case l, ok := <-lines:
			if strings.Contains(l, want) {
				return
			}
			if !ok {
				e.Fatalf("the stream ended before the line %q", want)
			}
		case <-limit:
			e.Fatalf("the line %q did not come", want)
		}
	}
}
