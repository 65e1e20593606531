package command_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/command"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// tricky stands before a program of a place and does what its place could: the word in the file trick says what.
const tricky = `#!/bin/sh
here=${0%/*} trick=
[ ! -f "$here/trick" ] || read -r trick <"$here/trick"
error() {
	echo "{\"contract\":1,\"error\":{\"kind\":\"$1\",\"message\":\"as the test asked\"$2}}"
	exit 0
}
[ "$1" != provision ] || echo x >>"$here/starts"
case $trick:$1 in
unreachable:* | unauthorized:*) error "$trick" ;;
exhausted:provision | unsupported:provision) error "$trick" ;;
throttled:provision) error unavailable ',"retry_after_seconds":1' ;;
falters:status)
	: >"$here/trick"
	error unavailable
	;;
lost:provision)
	: >"$here/trick"
	"$here/program" "$@" >/dev/null
	exit 1
	;;
cut:exec) echo $$ >"$here/running" ;;
esac
exec "$here/program" "$@"
`

// whole is the harness of an example with all that its place can be brought to.
func whole(t *testing.T, file string, manifest map[string]any) exttest.Harness {
	t.Helper()
	h := harness[testing.TB]("", manifest)
	text, err := os.ReadFile(filepath.Join(examples, file))
	if err != nil {
		t.Fatal(err)
	}
	h.Excuse = excuses
	h.Config = func(t testing.TB) extensions.Config {
		t.Helper()
		at := filepath.Join(filepath.Dir(program(t, string(text))), "tricky")
		write(t, at, tricky)
		return config(at, manifest, t.TempDir())
	}
	beside := func(cfg extensions.Config, name string) string {
		return filepath.Join(filepath.Dir(cfg.AllowedCommands[0]), name)
	}
	play := func(t testing.TB, cfg extensions.Config, trick string) {
		t.Helper()
		if err := os.WriteFile(beside(cfg, "trick"), []byte(trick+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(beside(cfg, "trick")) })
	}
	as := func(trick string) func(testing.TB, extensions.Config) {
		return func(t testing.TB, cfg extensions.Config) { t.Helper(); play(t, cfg, trick) }
	}
	h.Unreachable, h.Exhaust, h.Throttle, h.Falter, h.LoseAnswer = as("unreachable"), as("exhausted"), as("throttled"), as("falters"), as("lost")
	h.Unauthorized = func(t testing.TB, cfg extensions.Config) extensions.Config {
		t.Helper()
		play(t, cfg, "unauthorized")
		return cfg
	}
	h.NotHere = func(t testing.TB, cfg extensions.Config, s extensions.Spec) extensions.Spec {
		t.Helper()
		play(t, cfg, "unsupported")
		return s
	}
	h.Starts = func(_ testing.TB, cfg extensions.Config) int {
		text, _ := os.ReadFile(beside(cfg, "starts")) // none yet
		return strings.Count(string(text), "x")
	}
	h.CutExec = func(t testing.TB, cfg extensions.Config, _ extensions.Handle, started <-chan struct{}) {
		t.Helper()
		play(t, cfg, "cut")
		go func() {
			<-started
			text, err := os.ReadFile(beside(cfg, "running"))
			pid, bad := strconv.Atoi(strings.TrimSpace(string(text)))
			if err := errors.Join(err, bad); err != nil {
				t.Errorf("what runs: %v", err)
				return
			}
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}()
	}
	h.Vanish = func(t testing.TB, cfg extensions.Config, h extensions.Handle) {
		t.Helper()
		b, err := command.New().Open(t.Context(), cfg)
		if err == nil {
			_, err = b.Teardown(t.Context(), h)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	label := regexp.MustCompile(`("sandboxer.id": ?")[^"]*`)
	h.Relabel = func(t testing.TB, cfg extensions.Config, h extensions.Handle, id extensions.ID) {
		t.Helper()
		for _, name := range []string{"record.json", "labels"} {
			at := filepath.Join(cfg.StateDir, "command", "ext.mine", "acme_web", h.Ref, name)
			text, err := os.ReadFile(at)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err == nil {
				err = os.WriteFile(at, label.ReplaceAll(text, []byte("${1}"+string(id))), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return h
}
