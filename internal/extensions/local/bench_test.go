//go:build linux

package local

import (
	"os"
	"os/exec"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/stage"
)

// BenchmarkExec compares a command in a sandbox with the same one run bare,
// and with one start of our own executable, which is what a design would cost
// that starts it again for each command.
func BenchmarkExec(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("start-of-own-executable", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command("/proc/self/exe")
			cmd.Args = []string{stage.Name, stage.ModeNoop, "none"}
			cmd.Env = []string{}
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("local", func(b *testing.B) {
		be := openBackend(b, b.TempDir(), nil)
		h := provision(b, be, testSpec(b))
		for b.Loop() {
			if _, err := be.Exec(b.Context(), h, extensions.ExecRequest{Command: []string{"/bin/true"}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLife measures a sandbox from nothing to nothing, and what its init
// holds in memory for itself.
func BenchmarkLife(b *testing.B) {
	be := openBackend(b, b.TempDir(), nil)
	for b.Loop() {
		h, _, err := be.Provision(b.Context(), testSpec(b))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := be.Teardown(b.Context(), h); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := os.Stat(be.settings.root); err != nil {
		b.Fatal(err)
	}
}
