package docker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// withVolumes is the test's image after a script of root's, with volumes.
func withVolumes(t *testing.T, script string, volumes ...string) *extensions.Image {
	t.Helper()
	name := fmt.Sprintf("sandboxer-test-over-%d:latest", siteNo.Add(1))
	made := docker(t, "create", "--network", "none", imaged(t, script), "true")
	args := []string{"commit"}
	for _, at := range volumes {
		args = append(args, "--change", "VOLUME "+at)
	}
	docker(t, append(args, made, name)...)
	docker(t, "rm", "--volumes", made)
	t.Cleanup(func() { docker(t, "image", "rm", name) })
	return &extensions.Image{Pull: name}
}

// Volumes are on the engine's disk, and in copies.
func TestNoVolumeOfAnImageTakesSecrets(t *testing.T) {
	t.Parallel()
	const linked = "rm -rf /run && mkdir -p /a/b/c/sandboxer /a/b/c/secrets && chmod -R 777 /a && ln -s /a/b/c /run"
	for what, test := range map[string]struct {
		script  string
		volumes []string
		refused bool
	}{
		"behind a link":     {linked, []string{"/a/b/c/sandboxer", "/a/b/c/secrets"}, true},
		"above, by a link":  {"rm -rf /run && mkdir -p /run /x/y && ln -s /run /x/y/z", []string{"/x/y/z"}, true},
		"of a name":         {"true", []string{"/run/sandboxer/env", "/run/secrets/CANARY"}, true},
		"elsewhere":         {linked, []string{"/a/b/c/other", "/data"}, false},
		"below":             {"true", []string{"/run"}, false},
		"of our own folder": {"true", []string{"/run/secrets", "/run/sandboxer"}, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			b := s.open(t)
			image := withVolumes(t, test.script, test.volumes...)
			for _, as := range extensions.SecretDeliveries {
				spec := exttest.Spec(t, s.config, exttest.WithSecret("CANARY", "canary-aeW3ohjaiphe"), exttest.WithSecretsAs(as),
					exttest.With(func(spec *extensions.Spec) { spec.Image = image }))
				if !test.refused {
					h := s.become(t, b, spec)
					if got := inside(t, b, h, "", `printf %s "${CANARY-$(cat /run/secrets/CANARY)}"`); got != "canary-aeW3ohjaiphe" {
						t.Errorf("%s: inside it is %q", as, got)
					}
					continue
				}
				_, _, err := b.Provision(t.Context(), spec)
				if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(err.Error(), "lies over /run/") ||
					extensions.RemedyOf(err) == "" {
					t.Errorf("%s: %v; remedy %q", as, err, extensions.RemedyOf(err))
				}
			}
		})
	}
}

// A failed create leaves no log to look at.
func TestAnAgentThatEndsAtOnceIsToldByItsLog(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	for script, want := range map[string]string{"echo why it ends >&2; exit 3": "code 3: why it ends", "exit 4": "code 4, and its log has nothing"} {
		spec := onImage(t, exttest.Spec(t, s.config, exttest.WithEntrypoint(extensions.Entrypoint{Mode: extensions.EntrypointArgv,
			Argv: []string{"sh", "-c", script}})))
		h, _, err := b.Provision(t.Context(), spec)
		must(t, err)
		t.Cleanup(func() {
			_, err := b.Teardown(context.Background(), h)
			must(t, err)
		})
		found, err := b.look(t.Context(), h.ID)
		must(t, err)
		docker(t, "wait", nameOf(found.agent()))
		if _, err := b.WaitReady(t.Context(), spec, h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", script, err)
		}
	}
}

func TestAnImageThatCannotBeStartedIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	for script, want := range map[string]string{
		"ln -s /etc /workspace":                                 "/workspace",
		"ln -s /etc /.sandboxer && true":                        ownDir,
		"head -c 2000000 /dev/zero | tr '\\000' a >/etc/passwd": "no user",
	} {
		image := &extensions.Image{Pull: imaged(t, script)}
		_, _, err := b.Provision(t.Context(), exttest.Spec(t, s.config, exttest.With(func(spec *extensions.Spec) { spec.Image = image })))
		if err == nil || extensions.IsKind(err, extensions.KindInternal) || !strings.Contains(err.Error(), want) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v; remedy %q", script, err, extensions.RemedyOf(err))
		}
	}
}
