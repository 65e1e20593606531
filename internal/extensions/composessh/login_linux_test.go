package composessh

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

const loginCanary = "canary-login-5a3e"

func registriesOf(host, password string) extensions.Registries {
	return extensions.Registries{host: {Username: "bot", Password: func(context.Context) (extensions.Secret, error) {
		return extensions.NewSecret(password), nil
	}}}
}

// shows lists the files below dir and the command lines of this machine that have the canary.
func shows(t testing.TB, dir string) (where []string) {
	t.Helper()
	look := func(name string) {
		if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte(loginCanary)) {
			where = append(where, name)
		}
	}
	must(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			look(name)
		}
		return nil //nolint:nilerr // what is gone has nothing
	}))
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, name := range lines {
		look(name)
	}
	return where
}

func TestAPrivateImageIsPulledWithItsLoginAlone(t *testing.T) {
	t.Parallel()
	r := hosttest.NewRegistry(t, "bot", loginCanary)
	ref := r.Add(t, "private/tool:1")
	s := newSite(t)
	b := s.open(t)
	var seen atomic.Pointer[[]string]
	r.OnPull = func() {
		found := shows(t, s.root)
		seen.Store(&found)
	}
	for name, c := range map[string]struct {
		logins extensions.Registries
	}{
		"no login": {nil}, "a wrong password": {registriesOf(r.Addr, "wrong-"+loginCanary)}, "of another registry": {registriesOf("127.0.0.1:1", loginCanary)},
	} {
		spec := s.spec(t, func(sp *extensions.Spec) { sp.Image, sp.Registries = &extensions.Image{Pull: ref}, c.logins })
		_, _, err := b.Provision(t.Context(), spec)
		if !extensions.IsKind(err, extensions.KindUnauthorized) || !strings.Contains(extensions.RemedyOf(err), "registries of the binding") ||
			strings.Contains(err.Error(), loginCanary) {
			t.Errorf("%s: %v; remedy %q", name, err, extensions.RemedyOf(err))
		}
	}
	var told atomic.Int32
	ctx := extensions.WithProgress(t.Context(), func(subject, _ string) {
		if subject == "Pulling the image "+ref {
			told.Add(1)
		}
	})
	spec := s.spec(t, func(sp *extensions.Spec) {
		sp.Image, sp.Registries = &extensions.Image{Pull: ref}, registriesOf(r.Addr, loginCanary)
	})
	h, _, err := b.Provision(ctx, spec)
	must(t, err)
	if found := seen.Load(); found == nil || len(*found) > 0 || told.Load() != 1 {
		t.Errorf("while it was pulled, the password was in %v; told %d times", found, told.Load())
	}
	if found := shows(t, s.root); len(found) > 0 || strings.Contains(h.Encode(), loginCanary) {
		t.Errorf("the password is in %q", found)
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
}

func TestALoginIsNowhereWhenItsPullIsKilled(t *testing.T) {
	t.Parallel()
	r := hosttest.NewRegistry(t, "bot", loginCanary)
	ref := r.Add(t, "private/base:1")
	marks := newBuilder(t)
	asked, killed := make(chan struct{}), make(chan struct{})
	r.OnPull = func() {
		select {
		case asked <- struct{}{}:
			<-killed
		case <-killed:
		}
	}
	all, err := loginsFor(t.Context(), registriesOf(r.Addr, loginCanary), compose.Rendered{Pulls: []compose.Pull{{Image: ref}}})
	must(t, err)
	cmd := marks.command(t.Context(), "sbx-a", "pull_images", compose.Rendered{Pulls: []compose.Pull{{Image: ref}}}, false, all)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, cmd.Start())
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Error("nothing was pulled")
	}
	must(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
	_ = cmd.Wait()
	if found := shows(t, marks.root); len(found) > 0 {
		t.Errorf("the password is in %q", found)
	}
	close(killed)
}
