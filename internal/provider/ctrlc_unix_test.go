//go:build unix

package provider

import (
	"bytes"
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// The first Ctrl-C reaches terraform and, as in a terminal, the provider too.
func TestCtrlCLeavesAStateThatDestroysCleanly(t *testing.T) {
	t.Parallel()
	t.Run("at a vendor", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		b.script(vendor.Rule{Op: vendor.OpStart, Do: vendor.DoSlowReady, Delay: vendor.Duration(time.Hour)})
		interrupted(t, b, sandboxHCL(`name = "slow"`), func() { b.script() })
	})
	t.Run("on this machine", func(t *testing.T) {
		t.Parallel()
		requireTerraform(t)
		requireLocal(t)
		b := newBed(t)
		b.profile("profile.slow", "extends: profile.quickstart\nreadiness: { command: [test, -e, /tmp/ready], interval: 1s, timeout: 30m }\n")
		body := replaced(sandboxHCL(`name = "slow"`), "profile.stub", "profile.slow")
		interrupted(t, b, body, func() {
			b.profile("profile.slow", "extends: profile.quickstart\n")
		})
	})
}

// interrupted begins an apply that would not end, interrupts it, and goes on
// after heal has removed the reason.
func interrupted(t *testing.T, b *bed, body string, heal func()) {
	c := newCLI(t, b)
	c.write(body)
	cmd := c.command(nil, "apply", "-auto-approve", "-no-color")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.eventually("a sandbox that is being made", func() bool {
		all, err := b.engine().List(context.Background(), false)
		return err == nil && len(all) == 1 && all[0].Handle != ""
	})
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatalf("an interrupted apply succeeded:\n%s", out.String())
	}
	heal()
	c.destroy()
	c.nothingLeft()
	c.apply()
	c.planIsEmpty()
	c.destroy()
	c.nothingLeft()
}
