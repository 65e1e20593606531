package remote

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/hosttest"
)

// open is a client of the host for this test.
func open(t testing.TB, h extensions.Host, o Options) *Client {
	t.Helper()
	if o.Home == "" {
		o.Home = t.TempDir() // the machine's own ssh_config is none of ours
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	c, err := Open(h, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// within bounds one step of a test.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// runScript runs the script and returns what it printed.
func runScript(t testing.TB, c *Client, script string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	exit, err := c.Run(within(t, time.Minute), Command{Script: script, Stdout: &out, Stderr: &errs})
	if err != nil {
		t.Fatalf("%v (stderr %q)", err, errs.String())
	}
	return exit, out.String(), errs.String()
}

func wantKind(t testing.TB, err error, kind extensions.Kind) {
	t.Helper()
	if !extensions.IsKind(err, kind) {
		t.Fatalf("got %v (%s), want %s", err, extensions.KindOf(err), kind)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("this never came true: %s", what)
		}
	}
}

func TestRunGivesStreamsAndExitCode(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	exit, out, errs := runScript(t, c, "echo out; echo err >&2; exit 42")
	if exit != 42 || out != "out\n" || errs != "err\n" {
		t.Fatalf("exit %d, stdout %q, stderr %q", exit, out, errs)
	}
	if exit, out, errs = runScript(t, c, ""); exit != 0 || out+errs != "" {
		t.Fatalf("empty script: exit %d, stdout %q, stderr %q", exit, out, errs)
	}
	if c.HostKey() == nil {
		t.Error("no host key of a live connection")
	}
	if s := c.Stats(); s.Connections != 1 || s.Open != 1 || s.Sessions != 2 || s.RoundTrips != 2 {
		t.Errorf("stats: %+v", s)
	}
}

func TestRunKnowsSignals(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	for signal, want := range map[string]int{"TERM": 143, "KILL": 137, "USR1": 138} {
		if exit, _, _ := runScript(t, c, "kill -"+signal+" $$; sleep 5"); exit != want {
			t.Errorf("%s: exit %d, want %d", signal, exit, want)
		}
	}
}

func TestDestination(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]extensions.SSH{
		"box":                            {Alias: "box"},
		"me@box":                         {Alias: "box", User: "me"},
		"example.com":                    {Address: "example.com"},
		"me@example.com":                 {Address: "example.com", User: "me", Port: 22},
		"ssh://me@example.com:2222":      {Address: "example.com", User: "me", Port: 2222},
		"ssh://me@[2001:db8::1]:2222":    {Address: "[2001:db8::1]", User: "me", Port: 2222},
		"me@2001:db8::1":                 {Address: "2001:db8::1", User: "me"},
		"ssh://192.0.2.1:1":              {Address: "192.0.2.1", Port: 1},
		"ssh://me@box:" + "2200":         {Alias: "box", User: "me", Port: 2200},
		strings.Repeat("a", 3) + ".test": {Address: "aaa.test"},
	} {
		c := open(t, extensions.Host{Name: "h", SSH: &s}, Options{})
		if got := c.Destination(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	_, err := Open(extensions.Host{Name: "h"}, Options{})
	wantKind(t, err, extensions.KindInvalid)
}

func fileExists(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
}
