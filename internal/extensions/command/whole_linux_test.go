package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// example returns the path of an example that nobody else can write, wherever this repository lies.
func example(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(examples, file))
	if err != nil {
		t.Fatal(err)
	}
	return program(t, string(text))
}

func program(t testing.TB, text string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts no other processes")
	}
	path := filepath.Join(t.TempDir(), "program")
	write(t, path, text)
	return path
}

// write makes a program. No process starts meanwhile: it would hold the file open, and then it could not be run.
func write(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

var python = map[string]any{"contract": 1, "powers": []any{"exec", "files", "extend"}, "isolation_levels": []any{"none"}, "find": "strong",
	"expiry": "host", "extend_ttl": "both"}

var shell = map[string]any{"contract": 1, "isolation_levels": []any{"none"}, "find": "strong", "expiry": "host"}

func TestConformancePython(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() { // the example walls nothing off: what a check put below /tmp is there
		_ = os.RemoveAll("/tmp/some")
		_ = os.RemoveAll("/tmp/target")
	})
	exttest.Run(t, whole(t, "python/sandbox.py", python))
}

func TestConformanceShell(t *testing.T) {
	t.Parallel()
	exttest.Run(t, whole(t, "shell/sandbox.sh", shell))
}

func TestTheExamplesAreShort(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"python/sandbox.py", "shell/sandbox.sh"} {
		text, err := os.ReadFile(filepath.Join(examples, file))
		if n := strings.Count(string(text), "\n"); err != nil || n > 200 {
			t.Errorf("%s has %d lines, %v", file, n, err)
		}
	}
}
