//go:build unix

package ready

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire/execwiretest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext/shtexttest"
)

func TestProgramsArePOSIX(t *testing.T) {
	t.Parallel()
	shtexttest.POSIX(t, shtexttest.Programs(t, Scripts))
}

// with is an image that has sh and one of the tools.
func with(t *testing.T, tool string) func(context.Context, extensions.ExecRequest) (extensions.ExecResult, error) {
	t.Helper()
	dir := t.TempDir()
	if tool != "" {
		at, err := exec.LookPath("/usr/bin/" + tool)
		if err != nil {
			at, err = exec.LookPath(tool)
		}
		if err != nil && (tool == "nc" || tool == "wget") {
			at, err = exec.LookPath("busybox")
		}
		if err != nil {
			t.Skipf("this machine has no %s", tool)
		}
		if text, err := os.ReadFile(at); err != nil || strings.HasPrefix(string(text), "#!") {
			t.Skipf("%s is a script that needs other programs", at)
		}
		if err := os.Symlink(at, filepath.Join(dir, tool)); err != nil {
			t.Fatal(err)
		}
	}
	p := execwiretest.Place{Shell: []string{"/bin/sh"}, Dir: dir, Env: []string{"PATH=" + dir}}
	return func(ctx context.Context, req extensions.ExecRequest) (extensions.ExecResult, error) {
		return execwire.Run(ctx, req, execwire.Inside(dir, p.Transport))
	}
}

func TestAProbeAsksByWhatTheImageHas(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/fine" {
			http.Error(w, "broken", http.StatusServiceUnavailable)
		}
	})
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	_ = closed.Close()
	for _, tools := range []struct {
		names     []string
		good, bad extensions.Probe
	}{
		{[]string{"curl", "wget", "python3", "node"}, extensions.Probe{HTTP: server.URL + "/fine"}, extensions.Probe{HTTP: server.URL + "/broken"}},
		{[]string{"nc", "bash", "python3", "perl"}, extensions.Probe{TCP: server.Listener.Addr().String()}, extensions.Probe{TCP: nobody}},
	} {
		for _, tool := range tools.names {
			t.Run(tool+tools.good.HTTP[:min(4, len(tools.good.HTTP))], func(t *testing.T) {
				t.Parallel()
				exec := with(t, tool)
				if why, err := Probe(t.Context(), &tools.good, exec); why != "" || err != nil {
					t.Errorf("what answers: %q, %v", why, err)
				}
				if why, err := Probe(t.Context(), &tools.bad, exec); why == "" || err != nil {
					t.Errorf("what does not: %q, %v", why, err)
				}
			})
		}
		t.Run("none"+tools.good.TCP, func(t *testing.T) {
			t.Parallel()
			if why, err := Probe(t.Context(), &tools.good, with(t, "")); !strings.Contains(why, "the image has no") || err != nil {
				t.Errorf("%q, %v", why, err)
			}
		})
	}
}

func TestAProbeIsACommand(t *testing.T) {
	t.Parallel()
	exec := with(t, "")
	if why, err := Probe(t.Context(), nil, exec); why != "" || err != nil {
		t.Errorf("none: %q, %v", why, err)
	}
	if why, err := Probe(t.Context(), &extensions.Probe{Command: []string{"/bin/sh", "-c", "echo no >&2; exit 4"}}, exec); why != "the probe's exit code is 4: no" || err != nil {
		t.Errorf("%q, %v", why, err)
	}
	mute := extensions.Probe{Command: []string{"/bin/sh", "-c", "exit 4"}}
	if why, err := Probe(t.Context(), &mute, exec); why != "the probe's exit code is 4" || err != nil {
		t.Errorf("without a word: %q, %v", why, err)
	}
	gone := func(context.Context, extensions.ExecRequest) (extensions.ExecResult, error) {
		return extensions.ExecResult{}, extensions.Errorf(extensions.KindNotFound, "gone")
	}
	if _, err := Probe(t.Context(), &extensions.Probe{Command: []string{"x"}}, gone); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("%v", err)
	}
}

func TestAProbeThatCannotBeAskedIsRefused(t *testing.T) {
	t.Parallel()
	for _, p := range []extensions.Probe{{HTTP: "localhost"}, {HTTP: "ftp://x/"}, {HTTP: "http:///x"}, {TCP: "localhost"}} {
		if err := Check(&p, "http", "https"); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, p := range []*extensions.Probe{nil, {HTTP: "https://x/"}, {TCP: "[::1]:80"}, {Command: []string{"x"}}} {
		if err := Check(p, "http", "https"); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
