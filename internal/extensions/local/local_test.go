//go:build linux

package local

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// testSpec is a sandbox with everything shut and a short life.
func testSpec(t testing.TB) extensions.Spec {
	t.Helper()
	id, err := extensions.NewID(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	return extensions.Spec{ID: id, Account: "acme/web", Name: "test", Generation: 1, CreatedAt: now, Deadline: now.Add(5 * time.Minute),
		Isolation: extensions.IsolationProcess, Network: extensions.Network{Default: "deny"},
		Workspace: extensions.Workspace{Mode: extensions.WorkspaceRemoteCanonical, Access: extensions.AccessRW}}
}

// needSandboxes skips what starts some where that would take too long.
func needSandboxes(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts no sandboxes")
	}
}

func openBackend(t testing.TB, root string, values map[string]any) *Backend {
	t.Helper()
	needSandboxes(t)
	exttest.Guard(t, root)
	if values == nil {
		values = map[string]any{"launcher": testLauncher()}
	}
	b, err := New().Open(t.Context(), extensions.Config{Binding: "ext.local", Account: "acme/web", StateDir: root, Values: values})
	if err != nil {
		t.Fatal(err)
	}
	return b.(*Backend)
}

// provision makes a sandbox that is gone when the test ends.
func provision(t testing.TB, b *Backend, spec extensions.Spec) extensions.Handle {
	t.Helper()
	h, o, err := b.Provision(t.Context(), spec)
	if err != nil {
		t.Fatalf("provision: %v (%s)", err, extensions.RemedyOf(err))
	}
	t.Cleanup(func() {
		if _, err := b.Teardown(context.Background(), h); err != nil {
			t.Errorf("teardown: %v", err)
		}
	})
	if o.Phase != extensions.PhaseReady {
		t.Fatalf("phase %s: %s", o.Phase, o.Reason)
	}
	return h
}

func shell(t testing.TB, b *Backend, h extensions.Handle, script string) extensions.ExecResult {
	t.Helper()
	r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Shell: script, Timeout: time.Minute})
	if err != nil {
		t.Fatalf("exec %q: %v", script, err)
	}
	return r
}

func TestACommandRunsInside(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	h := provision(t, b, testSpec(t))
	r := shell(t, b, h, "id; pwd; env; ls -la / /proc/self/fd /workspace /dev; cat /proc/self/status")
	t.Logf("%s%s", r.Stdout, r.Stderr)
	if r.ExitCode != 0 || !strings.Contains(string(r.Stdout), "uid=1000(sandbox)") {
		t.Fatalf("exit %d", r.ExitCode)
	}
}
