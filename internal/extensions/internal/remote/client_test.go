package remote

import (
	"bytes"
	"context"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
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
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
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

func TestOpenWithoutSSH(t *testing.T) {
	t.Parallel()
	_, err := Open(extensions.Host{Name: "h"}, Options{})
	wantKind(t, err, extensions.KindInvalid)
}

func fileExists(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
}

// through is the server as it is reached at addr.
func through(t testing.TB, s *hosttest.Server, addr string) extensions.Host {
	t.Helper()
	h := s.Host()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	h.SSH.Address = host
	if h.SSH.Port, err = strconv.ParseInt(port, 10, 64); err != nil {
		t.Fatal(err)
	}
	return h
}
