package e2btest

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// sdk installs the vendor's own SDK where this module keeps what it builds, once for each lock file, and returns
// its folder.
func sdk(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s: install Node.js 20.18 or newer to let the vendor's own SDK speak to the fake", program)
		}
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(root, ".cache", "e2b-sdk")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	lock := flock.New(filepath.Join(at, "lock"))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	same := true
	for _, name := range []string{"package.json", "package-lock.json", "scenario.mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata/sdk", name))
		if err != nil {
			t.Fatal(err)
		}
		old, _ := os.ReadFile(filepath.Join(at, name))
		same = same && (name == "scenario.mjs" || string(old) == string(text))
		if err := os.WriteFile(filepath.Join(at, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(at, "installed")); err == nil && same {
		return at
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir, install.WaitDelay = at, time.Second
	if out, err := install.CombinedOutput(); err != nil {
		_ = os.Remove(filepath.Join(at, "package-lock.json"))
		t.Skipf("the vendor's own SDK cannot be installed here: npm ci: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(at, "installed"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return at
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	at := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(at, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(at)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-update writes it; review what changed):\n%s", at, diff)
	}
}

func TestTheVendorsOwnSDKSpeaksToTheFake(t *testing.T) {
	t.Parallel()
	at := sdk(t)
	v := Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "scenario.mjs")
	node.Dir, node.WaitDelay = at, time.Second
	node.Env = append(os.Environ(), "E2B_API_URL="+v.APIURL, "E2B_SANDBOX_URL="+v.SandboxURL, "E2B_API_KEY="+v.Key)
	out, err := node.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	golden(t, "sdk.answers", string(out))
	calls, err := v.Calls()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "sdk.calls", Script(calls))
	if left := v.Sandboxes(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
