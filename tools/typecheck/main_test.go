package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What compiles here may not compile there: in a file of its own system, in a test, and by the size of a number.
func TestWhatDoesNotCompileElsewhereIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.org/x\n\ngo 1.26\n",
		"x.go":            "package x\n\nvar Large int = 1 << 40\n\nfunc name() string { return \"\" + own }\n",
		"x_linux.go":      "package x\n\nconst own = \"linux\"\n",
		"x_darwin.go":     "package x\n\nconst own = \"darwin\"\n",
		"x_windows.go":    "package x\n\nconst own = 7\n",
		"x_test.go":       "package x\n\nvar _ = help()\n",
		"h_linux_test.go": "package x\n\nfunc help() int { return 1 }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[string][]string{
		"linux/amd64":   nil,
		"linux/386":     {"x.go:3:"},
		"darwin/arm64":  {"x_test.go:3:"},
		"windows/amd64": {"x.go:5:", "x_test.go:3:"},
	} {
		found, err := check(dir, target, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != len(want) {
			t.Errorf("%s: %q", target, found)
		}
		for _, w := range want {
			if !strings.Contains(strings.Join(found, "\n"), string(filepath.Separator)+w) {
				t.Errorf("%s: nothing of %s in %q", target, w, found)
			}
		}
	}
	if found, err := check(dir, "darwin/arm64", false); err != nil || len(found) > 0 {
		t.Errorf("without tests: %q, %v", found, err)
	}
	if _, err := check(dir, "plan9", true); err == nil {
		t.Error("a target without architecture was taken")
	}
}
