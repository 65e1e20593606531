package docker

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

const loginCanary = "canary-login-77d0"

func registries(host, user, password string) exttest.Option {
	return exttest.With(func(s *extensions.Spec) {
		s.Registries = extensions.Registries{host: {Username: user, Password: func(context.Context) (extensions.Secret, error) {
			return extensions.NewSecret(password), nil
		}}}
	})
}

func TestAPrivateImageIsPulledWithItsLoginAlone(t *testing.T) {
	t.Parallel()
	r := hosttest.NewRegistry(t, "bot", loginCanary)
	ref := r.Add(t, "private/tool:1")
	s := newSite(t)
	b := s.open(t)
	image := exttest.With(func(s *extensions.Spec) { s.Image = &extensions.Image{Pull: ref} })
	for name, c := range map[string]struct {
		opts   []exttest.Option
		remedy string
	}{
		"no login":            {nil, "registries of the binding"},
		"a wrong password":    {[]exttest.Option{registries(r.Addr, "bot", "wrong-"+loginCanary)}, "check username and password"},
		"of another registry": {[]exttest.Option{registries("127.0.0.1:1", "bot", loginCanary)}, "registries of the binding"},
	} {
		_, before := r.Asked()
		_, err := b.PrepareImage(t.Context(), exttest.Spec(t, s.config, append(c.opts, image)...))
		if !extensions.IsKind(err, extensions.KindUnauthorized) || !strings.Contains(extensions.RemedyOf(err), c.remedy) ||
			!strings.Contains(extensions.RemedyOf(err), r.Addr) || strings.Contains(fmt.Sprint(err, extensions.RemedyOf(err)), loginCanary) {
			t.Errorf("%s: %v; remedy %q", name, err, extensions.RemedyOf(err))
		}
		if _, served := r.Asked(); served != before {
			t.Errorf("%s: the registry served %d requests", name, served-before)
		}
	}
	var mu sync.Mutex
	var told []string
	ctx := extensions.WithProgress(t.Context(), func(subject, detail string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, subject+": "+detail)
	})
	spec := exttest.Spec(t, s.config, image, registries(r.Addr, "bot", loginCanary))
	h, _, err := b.Provision(ctx, spec)
	must(t, err)
	for what, text := range map[string]string{
		"the containers": docker(t, append([]string{"container", "inspect"},
			strings.Fields(docker(t, "ps", "--all", "--quiet", "--filter", "label="+extensions.LabelID+"="+string(h.ID)))...)...),
		"the image": docker(t, "image", "inspect", ref), "the handle": h.Encode(), "the progress": strings.Join(told, "\n"),
	} {
		if strings.Contains(text, loginCanary) {
			t.Errorf("%s has the password", what)
		}
	}
	if !slices.Contains(told, "Pulling the image "+ref+": ") {
		t.Errorf("told %q", told)
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
}

func TestABaseIsPulledWithItsLogin(t *testing.T) {
	t.Parallel()
	r := hosttest.NewRegistry(t, "bot", loginCanary)
	ref := r.Add(t, "private/base:1")
	m, s := newMark(t), newSite(t)
	b := s.open(t)
	files := map[string]string{"Dockerfile": "FROM " + ref + "\nLABEL test.run=" + m.run + "\nRUN echo 1 >/x\n"}
	build := extensions.Image{Build: &extensions.BuildStage{Context: "."}}
	_, err := b.PrepareImage(t.Context(), exttest.Spec(t, s.config, buildingFrom(files, build)...))
	if !extensions.IsKind(err, extensions.KindUnauthorized) {
		t.Errorf("without a login: %v", err)
	}
	h, _ := s.provision(t, b, buildingFrom(files, build, registries(r.Addr, "bot", loginCanary))...)
	for _, id := range m.all(t) {
		if text := docker(t, "image", "inspect", id) + docker(t, "image", "history", "--no-trunc", id); strings.Contains(text, loginCanary) {
			t.Errorf("the image has the password: %s", text)
		}
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
}

func TestABaseWithOrdersForBuildsIsRefused(t *testing.T) {
	t.Parallel()
	base := hosttest.Image(t)
	name := strings.Replace(base, ":latest", ":onbuild", 1)
	cmd := exec.CommandContext(t.Context(), "docker", "build", "--quiet", "--force-rm", "--tag", name, "-")
	cmd.Stdin = strings.NewReader("FROM " + base + "\nONBUILD RUN id\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { docker(t, "image", "rm", name) })
	s := newSite(t)
	spec := exttest.Spec(t, s.config, buildingFrom(map[string]string{"Dockerfile": "FROM " + name + "\n"},
		extensions.Image{Build: &extensions.BuildStage{Context: "."}})...)
	if _, err := s.open(t).PrepareImage(t.Context(), spec); !extensions.IsKind(err, extensions.KindInvalid) ||
		!strings.Contains(err.Error(), "ONBUILD") {
		t.Errorf("%v", err)
	}
}
