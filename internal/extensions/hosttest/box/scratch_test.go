package box

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const heldEnv = "BOX_TEST_HOLDS"

// A test process that is killed leaves its folder to the next one, which removes it; that of a living one stays.
func TestTheFolderOfAKilledTestIsRemovedByTheNext(t *testing.T) {
	if os.Getenv(heldEnv) != "" { // the process that is killed
		_, _ = os.Stdout.WriteString("holds " + scratch(t) + "\n")
		select {}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), heldEnv+"=1")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	dir := strings.TrimSpace(strings.TrimPrefix(line, "holds "))
	t.Run("living", func(t *testing.T) { scratch(t) })
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("the folder of a living test: %v", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	t.Run("next", func(t *testing.T) { scratch(t) })
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder of a killed test: %v", err)
	}
}

// The folder of a test that ends is removed while others look for what was left.
func TestASweepMakesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, sweep(filepath.Join(dir, lockName)))
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
