package docker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// withUsers is an image that runs as app, and whose files of users everybody may change.
func withUsers(t *testing.T, passwd, group string) *extensions.Image {
	t.Helper()
	name := fmt.Sprintf("sandboxer-test-users-%d-%d:1", os.Getpid(), siteNo.Add(1))
	made := docker(t, "create", "--network", "none", here.image(t), "true")
	for file, text := range map[string]string{"passwd": passwd, "group": group} {
		from := filepath.Join(t.TempDir(), file)
		must(t, os.WriteFile(from, []byte(text), 0o666))
		must(t, os.Chmod(from, 0o666))
		docker(t, "cp", from, made+":/etc/"+file)
	}
	docker(t, "commit", "--change", "USER app", made, name)
	docker(t, "rm", made)
	t.Cleanup(func() { docker(t, "image", "rm", name) })
	return &extensions.Image{Pull: name}
}

func TestNoFileOfUsersMakesAnImageRoot(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	const app, ask = "app:x:1000:1000::/:/bin/sh\n", "stat -c %u /proc/1; id -u; id -G"
	for what, test := range map[string]struct{ passwd, group, want string }{
		"no number":              {"app:x::0::/:/bin/sh\n" + app, "", "1000\n1000\n1000"},
		"a space before":         {" app:x:0:0::/:/bin/sh\n" + app, "", "1000\n1000\n1000"},
		"a NUL before":           {"x\x00" + app + "app:x:0:0::/:/bin/sh\n", "", "1000\n1000\n1000"},
		"a number of more bits":  {"app:x:4294967296:0::/:/bin/sh\n" + app, "", "1000\n1000\n1000"},
		"a file that is changed": {strings.ReplaceAll(app, "1000", "1234"), "more:x:2000:other,app\n", "1234\n1234\n1234 2000"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := s.become(t, b, exttest.Spec(t, s.config, exttest.With(func(spec *extensions.Spec) {
				spec.Image = withUsers(t, test.passwd, test.group)
			})))
			if got := inside(t, b, h, "", ask); got != test.want {
				t.Errorf("it starts as %q, want %q", got, test.want)
			}
			inside(t, b, h, "", "echo 'app:x:0:0::/:/bin/sh' >/etc/passwd; echo 'root:x:0:app' >/etc/group")
			if got := inside(t, b, h, "", ask); got != test.want {
				t.Errorf("after its files were changed it is %q, want %q", got, test.want)
			}
		})
	}
}

// Who asks for a user by name has not asked for root, whatever an image calls so.
func TestAUserAskedForByNameIsRootOnlyByThatName(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	image := withUsers(t, "root:x:0:0::/:/bin/sh\napp:x:0:0::/:/bin/sh\nother:x:1234:1234::/:/bin/sh\n", "")
	as := func(user string) extensions.Spec {
		return exttest.Spec(t, s.config, exttest.With(func(spec *extensions.Spec) {
			spec.Image, spec.Options = image, map[string]any{"user": user}
		}))
	}
	for _, user := range []string{"app", "app:app", "4294967296", "+0"} {
		h, _, err := b.Provision(t.Context(), as(user))
		if err == nil {
			t.Errorf("%s runs as %q", user, inside(t, b, h, "", "id -u"))
			_, err = b.Teardown(t.Context(), h)
			must(t, err)
			continue
		}
		if user != "app:app" && (!extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(extensions.RemedyOf(err), "uid:gid")) {
			t.Errorf("%s: %v; remedy %q", user, err, extensions.RemedyOf(err))
		}
	}
	for user, want := range map[string]string{"root": "0", "0:0": "0", "other": "1234"} {
		h := s.become(t, b, as(user))
		inside(t, b, h, "", "printf '%s:x:0:0::/:/bin/sh\n' root other >/etc/passwd")
		if got := inside(t, b, h, "", "id -u"); got != want {
			t.Errorf("%s runs as %q", user, got)
		}
	}
}

func TestNoLabelOfAnImageIsOneOfOurs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	must(t, err)
	own := regexp.MustCompile(`(?m)^\s*(?:const )?label\w+ += "(sandboxer\.[a-z-]+)"`)
	var names, changes []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, m := range own.FindAllStringSubmatch(string(text), -1) {
			names, changes = append(names, m[1]), append(changes, "--change", "LABEL "+m[1]+"=theirs")
		}
	}
	if len(names) < 15 {
		t.Fatalf("our labels are %q", names)
	}
	name := fmt.Sprintf("sandboxer-test-labels-%d-%d:1", os.Getpid(), siteNo.Add(1))
	made := docker(t, "create", "--network", "none", here.image(t), "true")
	docker(t, slices.Concat([]string{"commit"}, changes, []string{made, name})...)
	docker(t, "rm", made)
	t.Cleanup(func() { docker(t, "image", "rm", name) })
	s := newSite(t)
	b := s.open(t)
	h := s.become(t, b, exttest.Spec(t, s.config, exttest.With(func(spec *extensions.Spec) {
		its := extensions.Container{Image: extensions.Image{Pull: name}}
		spec.Containers = &extensions.Containers{Agent: its, Services: map[string]extensions.Container{"web": {Image: its.Image,
			Command: []string{"sleep", "600"}}}}
	})))
	found, err := b.look(t.Context(), h.ID)
	must(t, err)
	if len(found.all()) != 3 {
		t.Fatalf("it has %d containers", len(found.all()))
	}
	for _, of := range found.all() {
		for _, name := range names {
			if of.Labels[name] == "theirs" {
				t.Errorf("%s has the image's %s", nameOf(of), name)
			}
		}
	}
	for _, name := range names {
		if _, set := found.placeholder()[name]; !set {
			t.Errorf("what takes a name has the image's %s", name)
		}
	}
}

// An image's configuration can be such that the engine makes no container of it, or one that no client can read.
func TestAnImageWithAConfigurationOfNonsenseLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	at := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string,
	) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.gate.path)
	}}}
	for what, config := range map[string]string{
		"a port that is none": `{"ExposedPorts": {"none": {}}}`,
		"an endless folder":   `{"WorkingDir": "/` + strings.Repeat("a", 5000) + `"}`,
	} {
		name := fmt.Sprintf("sandboxer-test-nonsense-%d-%d", os.Getpid(), siteNo.Add(1))
		made := docker(t, "create", "--network", "none", here.image(t), "true")
		r, err := at.Post("http://engine/commit?repo="+name+"&container="+made, "application/json", strings.NewReader(config))
		must(t, err)
		must(t, r.Body.Close())
		docker(t, "rm", made)
		t.Cleanup(func() { docker(t, "image", "rm", name) })
		spec := exttest.Spec(t, s.config, exttest.WithSecret("A", "b"), exttest.WithEntrypoint(extensions.Entrypoint{Mode: extensions.EntrypointImage}),
			exttest.With(func(spec *extensions.Spec) { spec.Image = &extensions.Image{Pull: name} }))
		if _, _, err := b.Provision(t.Context(), spec); err == nil || strings.Contains(err.Error(), "residue") {
			t.Errorf("%s: %v", what, err)
		}
		if found, err := b.lookEverywhere(t.Context(), spec.ID); err != nil || !found.none() {
			t.Errorf("%s: %+v is left, %v", what, found, err)
		}
	}
}

func TestPullErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]extensions.Kind{
		`manifest for nginx:nope not found: manifest unknown: manifest unknown`:                                                                                                                    extensions.KindUnsupported,
		`pull access denied for nobody/x, repository does not exist or may require 'docker login'`:                                                                                                 extensions.KindUnsupported,
		`no matching manifest for linux/arm64/v8 in the manifest list entries`:                                                                                                                     extensions.KindUnsupported,
		`Get "https://registry.example/v2/": dial tcp: lookup registry.example on 10.0.0.1: no such host`:                                                                                          extensions.KindUnavailable,
		`Get "https://registry.example/v2/": net/http: TLS handshake timeout`:                                                                                                                      extensions.KindUnavailable,
		`toomanyrequests: You have reached your pull rate limit.`:                                                                                                                                  extensions.KindUnavailable,
		`Head "https://registry.example/v2/x/manifests/1": unauthorized: authentication required`:                                                                                                  extensions.KindUnauthorized,
		`failed to resolve reference "registry.example/x:1": pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials`:          extensions.KindUnauthorized,
		`failed to resolve reference "registry.example/x:1": unexpected status from HEAD request to https://registry.example/v2/x/manifests/1: 401 Unauthorized`:                                   extensions.KindUnauthorized,
		`failed to resolve reference "docker.io/nobody/x:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`: extensions.KindUnsupported,
		`failed to register layer: write /usr/lib/x: no space left on device`:                                                                                                                      extensions.KindExhausted,
		`invalid reference format: repository name must be lowercase`:                                                                                                                              extensions.KindInvalid,
	} {
		if kind, remedy := judgePull(text); kind != want || remedy == "" {
			t.Errorf("%s: %s %q, want %s", text, kind, remedy, want)
		}
	}
}
