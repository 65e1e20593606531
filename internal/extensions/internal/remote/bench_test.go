package remote

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// BenchmarkCall is the price of one exec on a live connection. The login shell
// is the account's own; with dash it is what remains.
func BenchmarkCall(b *testing.B) {
	for name, opts := range map[string][]hosttest.Option{"login-shell": nil, "dash": {hosttest.WithShell("/bin/dash")}} {
		b.Run(name, func(b *testing.B) {
			c := open(b, hosttest.SSHD(b, opts...).Host(), Options{})
			calls(b, c, 1, "")
			for b.Loop() {
				if err := c.Call(b.Context(), Call{Script: "answer 1"}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCallBig sends a script of the size of a create's, and 1 MiB.
func BenchmarkCallBig(b *testing.B) {
	c := open(b, hosttest.SSHD(b).Host(), Options{})
	script := strings.Repeat(": a line as long as lines in scripts are, more or less\n", 600) + "wc -c >/dev/null; answer 1"
	payload, _ := randomPayload(b, 1<<20)
	calls(b, c, 1, "")
	for b.Loop() {
		if err := c.Call(b.Context(), Call{Script: script, Payload: bytes.NewReader(payload)}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExecFloor is an exec that runs nothing of ours: sshd and the login shell.
func BenchmarkExecFloor(b *testing.B) {
	c := open(b, hosttest.SSHD(b).Host(), Options{})
	calls(b, c, 1, "")
	for b.Loop() {
		conn, err := c.host.acquire(within(b, time.Minute), true, false)
		if err != nil {
			b.Fatal(err)
		}
		s, err := conn.link.client.NewSession()
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Run(":"); err != nil {
			b.Fatal(err)
		}
		_ = s.Close()
		c.host.release(conn, true)
	}
}
