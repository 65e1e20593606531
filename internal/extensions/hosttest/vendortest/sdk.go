package vendortest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
)

// sdkTime bounds the installation of an SDK and its scenario each.
const sdkTime = 5 * time.Minute

// Scenario lets a vendor's own SDK play testdata/sdk/scenario.mjs, with these variables, and returns what that printed. The
// test is skipped where there is no Node.js, or nowhere to get the SDK from.
func Scenario(t testing.TB, vendor string, env ...string) string {
	t.Helper()
	at := installed(t, vendor)
	ctx, cancel := context.WithTimeout(t.Context(), sdkTime)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "scenario.mjs")
	node.Dir, node.WaitDelay = at, time.Second
	node.Env = append(os.Environ(), env...)
	out, err := node.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// installed installs what testdata/sdk names where this module keeps what it builds, once for each lock file, and returns
// that folder.
func installed(t testing.TB, vendor string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts no other processes")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s: install Node.js 20.18 or newer to let the vendor's own SDK speak to the fake", program)
		}
	}
	root, err := Root()
	must(t, err)
	at := filepath.Join(root, ".cache", vendor+"-sdk")
	must(t, os.MkdirAll(at, 0o755))
	lock := flock.New(filepath.Join(at, "lock"))
	must(t, lock.Lock())
	defer func() { _ = lock.Close() }()
	same := true
	for _, name := range []string{"package.json", "package-lock.json", "scenario.mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata/sdk", name))
		must(t, err)
		old, _ := os.ReadFile(filepath.Join(at, name))
		same = same && (name == "scenario.mjs" || string(old) == string(text))
		must(t, os.WriteFile(filepath.Join(at, name), text, 0o644))
	}
	if _, err := os.Stat(filepath.Join(at, "installed")); err == nil && same {
		return at
	}
	ctx, cancel := context.WithTimeout(t.Context(), sdkTime)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir, install.WaitDelay = at, time.Second
	if out, err := install.CombinedOutput(); err != nil {
		_ = os.Remove(filepath.Join(at, "package-lock.json"))
		t.Skipf("the vendor's own SDK cannot be installed here: npm ci: %v\n%s", err, out)
	}
	must(t, os.WriteFile(filepath.Join(at, "installed"), nil, 0o644))
	return at
}

// Golden holds text against a file of testdata; update writes it.
func Golden(t testing.TB, update bool, name, got string) {
	t.Helper()
	at := filepath.Join("testdata", name)
	if update {
		must(t, os.WriteFile(at, []byte(got), 0o644))
	}
	want, err := os.ReadFile(at)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-update writes it; review what changed):\n%s", at, diff)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
