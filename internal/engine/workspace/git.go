package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// gitSettings keep the user's and the repository's configuration from running anything: hooks, monitors,
// background maintenance, submodules.
var gitSettings = []string{
	"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "core.logAllRefUpdates=false",
	"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "fetch.recurseSubmodules=no", "-c", "submodule.recurse=false",
}

// keptGitEnv are the GIT_ variables that configure access. Any other would change or trace what we ask
// for.
var keptGitEnv = []string{"GIT_ASKPASS", "GIT_SSH", "GIT_SSH_", "GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_", "GIT_CONFIG_GLOBAL",
	"GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"}

const (
	maxGitOutput = 64 << 20 // the refs of a very large repository
	gitKillGrace = 5 * time.Second
)

// gitCmd prepares git with literal arguments, without a terminal or prompts, limited to the allowed
// protocols. It runs in dir.
func gitCmd(ctx context.Context, loc location, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append(append([]string{}, gitSettings...), args...)...)
	cmd.Dir, cmd.WaitDelay = dir, gitKillGrace
	cmd.Env = append(cleanEnv(os.Environ()),
		"GIT_TERMINAL_PROMPT=0", "SSH_ASKPASS_REQUIRE=never", "GCM_INTERACTIVE=never",
		"GIT_ALLOW_PROTOCOL="+strings.Join(allowedSchemes, ":"), "GIT_LFS_SKIP_SMUDGE=1", "LC_ALL=C")
	if os.Getenv("GIT_ASKPASS") == "" { // set but empty, it keeps git from opening the desktop's dialog
		cmd.Env = append(cmd.Env, "GIT_ASKPASS=")
	}
	cmd.Env = append(cmd.Env, loc.credentialEnv()...)
	detach(cmd)
	return cmd
}

func cleanEnv(env []string) []string {
	var kept []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "GIT_") || keepGitEnv(name) {
			kept = append(kept, kv)
		}
	}
	return kept
}

func keepGitEnv(name string) bool {
	for _, keep := range keptGitEnv {
		if name == keep || strings.HasSuffix(keep, "_") && strings.HasPrefix(name, keep) {
			return true
		}
	}
	return false
}

// credentialEnv passes a URL's credential to git through the environment, for that URL's host only: every
// process here can read argument lists.
func (l location) credentialEnv() []string {
	if l.user == "" && l.password == "" {
		return nil
	}
	scope := "credential." + l.host
	if l.password == "" {
		return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=" + scope + ".username", "GIT_CONFIG_VALUE_0=" + l.user}
	}
	helper := `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$SANDBOXER_GIT_USER" "$SANDBOXER_GIT_PASSWORD"; }; f`
	return []string{
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=" + scope + ".helper", "GIT_CONFIG_VALUE_0=", // drops the user's own helpers for this host
		"GIT_CONFIG_KEY_1=" + scope + ".helper", "GIT_CONFIG_VALUE_1=" + helper,
		"SANDBOXER_GIT_USER=" + l.user, "SANDBOXER_GIT_PASSWORD=" + l.password,
	}
}

// run returns git's stdout.
func run(ctx context.Context, loc location, dir string, args ...string) (string, error) {
	cmd := gitCmd(ctx, loc, dir, args...)
	stdout, stderr := &capped{limit: maxGitOutput}, &capped{limit: 8 << 10}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Run(); err != nil {
		return "", gitFailed(ctx, loc, err, stderr.String())
	}
	if stdout.cut {
		return "", extensions.Errorf(extensions.KindInvalid, "the repository %s has too many refs to list", loc.origin()).
			WithRemedy("Give a branch, a tag or a full commit.")
	}
	return stdout.String(), nil
}

// capped keeps the first limit bytes.
type capped struct {
	bytes.Buffer
	limit int
	cut   bool
}

func (c *capped) Write(p []byte) (int, error) {
	room := c.limit - c.Len()
	c.cut = c.cut || len(p) > room
	c.Buffer.Write(p[:min(room, len(p))])
	return len(p), nil
}

// neutralDir is where git runs outside of any repository.
func neutralDir() string { return string(filepath.Separator) }

// gitFailed is the only place that interprets git's messages.
func gitFailed(ctx context.Context, loc location, err error, stderr string) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, exec.ErrNotFound) {
		return extensions.Errorf(extensions.KindInvalid, "git is not installed, but the workspace comes from %s", loc.origin()).
			WithRemedy("Install git on this machine, or give a local folder.")
	}
	said := extensions.Clean(strings.TrimSpace(loc.redact(stderr)), 400)
	if said == "" {
		said = fmt.Sprint(err)
	}
	kind, remedy := classify(strings.ToLower(stderr))
	return extensions.Errorf(kind, "git could not read %s: %s", loc.origin(), said).WithRemedy("%s", remedy)
}

func classify(stderr string) (extensions.Kind, string) {
	for _, c := range []struct {
		kind   extensions.Kind
		remedy string
		signs  []string
	}{
		{extensions.KindInvalid, "Check the URL; the repository must exist.",
			[]string{"not found", "does not exist", "does not appear to be a git repository", "not a git repository"}},
		{extensions.KindInvalid, "Add the folder to git's safe.directory, or change its owner.", []string{"dubious ownership"}},
		{extensions.KindUnauthorized, "Check git's credential for this host: a credential helper, an SSH key or agent.",
			[]string{"authentication failed", "could not read username", "could not read password", "permission denied", "error: 401", "error: 403",
				"access denied"}},
		{extensions.KindUnauthorized, "Add the host's key to known_hosts after checking it.", []string{"host key verification failed"}},
		{extensions.KindInvalid, "Use https, ssh or file.", []string{"transport '", "not allowed"}},
	} {
		for _, sign := range c.signs {
			if strings.Contains(stderr, sign) {
				return c.kind, c.remedy
			}
		}
	}
	return extensions.KindUnreachable, "Check the network and the URL, then try again."
}
