package bench

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// BenchmarkRun times `sandboxer run` with a durable ledger, from a warm start, beside the command itself, which does nothing,
// and beside other ways to run it apart from the rest of this machine. ms-beyond of "itself" is what a run costs; it must
// stay below 150 on a machine that does nothing else.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "sandboxer")
	if err := command(b.Context(), "", []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin,
		"github.com/sand-boxer/terraform-provider-sandboxer"); err != nil {
		b.Fatal(err)
	}
	ours := func(int) error {
		return command(b.Context(), dir, []string{"SANDBOXER_STATE_DIR=" + filepath.Join(dir, "state")}, bin, "run", "profile.quickstart", "--",
			"true")
	}
	if err := ours(0); err != nil { // it makes the ledger
		b.Fatal(err)
	}
	b.Run("itself", func(b *testing.B) {
		beside(b, func(int) error { return command(b.Context(), dir, nil, "true") }, ours, 1)
	})
	b.Run("bwrap", func(b *testing.B) {
		if _, err := exec.LookPath("bwrap"); err != nil {
			b.Skipf("no bubblewrap here: %v", err)
		}
		beside(b, func(int) error {
			return command(b.Context(), dir, nil, "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev",
				"/dev", "true")
		}, ours, 1)
	})
	b.Run("docker", func(b *testing.B) {
		hosttest.Docker(b)
		image := hosttest.Image(b)
		beside(b, func(int) error { return run(b.Context(), "run", "--rm", "--network", "none", image, "true") }, ours, 1)
	})
}
