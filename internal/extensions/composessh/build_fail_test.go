//go:build unix

package composessh

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

func TestAFailedBuildSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	for what, c := range map[string]struct{ dockerfile, kind, text string }{
		"step": {b.from(" AS one") + "RUN echo 1 >/x\n" + b.from("") + "RUN echo 2 >/y\nRUN echo the reason; exit 3\n", "invalid",
			"the reason"},
		"dockerfile":  {"FORM x\n", "invalid", "FORM"},
		"no registry": {"FROM localhost:1/nobody/nothing:1\n", "unavailable", "localhost:1"},
		"endless":     {b.from("") + "RUN yes | head -c 30000000; exit 1\n", "invalid", "non-zero code"},
	} {
		id := "sbx-" + strings.ReplaceAll(what, " ", "")
		b.box(id, map[string]string{"Dockerfile": c.dockerfile})
		got := b.build(id, b.one(compose.Build{}))
		if !strings.Contains(got, `"kind":"`+c.kind+`"`) || !strings.Contains(got, c.text) || len(got) > 16<<10 {
			t.Errorf("%s: %d bytes: %.3000s", what, len(got), got)
		}
		b.release(id)
		if left := b.images(); len(left) > 0 {
			t.Errorf("%s: images are left: %v", what, left)
		}
	}
}

// Nameless images that were there before belong to somebody else.
func TestABuildSparesWhatOthersLeft(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	b.box("sbx-a", map[string]string{"Dockerfile": b.multistage()})
	folder := filepath.Join(b.root, "sbx-a", "workspace")
	b.docker("build", "--quiet", "--network", "none", "--target", "one", folder)
	before := b.images()
	if len(before) == 0 {
		t.Fatal("the owner's build left nothing; the test proves nothing")
	}
	if got := b.build("sbx-a", b.one(compose.Build{})); got != "built" {
		t.Fatal(got)
	}
	b.release("sbx-a")
	after := b.images()
	for _, image := range before {
		if !slices.Contains(after, image) {
			t.Errorf("the owner's image %s is gone", image)
		}
	}
	if len(after) != len(before) {
		t.Errorf("images %v, before %v", after, before)
	}
	b.docker(append([]string{"image", "rm", "--force"}, after...)...)
}

// A script that was killed in the middle of a build is made good by the next
// one, and by the release.
func TestABuildThatWasKilledLeavesNothing(t *testing.T) {
	t.Parallel()
	for what, again := range map[string]bool{"built again": true, "only released": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(t)
			b.box("sbx-a", map[string]string{"Dockerfile": b.from(" AS one") + "RUN echo 1 >/one\n" + b.from("") +
				"COPY --from=one /one /one\nRUN sleep 10\n"})
			r := b.one(compose.Build{})
			cmd := b.command(t.Context(), "sbx-a", "build_images", r, false, nil)
			ownGroup(cmd)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(func() bool { return len(b.images()) >= 3 })
			killGroup(cmd)
			_ = cmd.Wait()
			if again {
				if got := b.build("sbx-a", r); got != "built" {
					t.Fatal(got)
				}
			}
			// The daemon may still be at the step it was killed in.
			waitFor(func() bool { return b.docker("ps", "--all", "--quiet", "--filter", "label=test.run="+b.run) == "" })
			if got := b.release("sbx-a"); got != "released:" {
				t.Error(got)
			}
		})
	}
}

func TestKeptImagesStay(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	b.box("sbx-a", map[string]string{"Dockerfile": b.from("")})
	r := b.one(compose.Build{})
	if got := b.do("sbx-a", "build_images\nanswer built", r, true); got != "built" {
		t.Fatal(got)
	}
	if got := b.release("sbx-a"); got != "released:" {
		t.Error(got)
	}
	if got := b.docker("image", "inspect", "--format", "{{.Id}}", r.Builds[0].Tag); !strings.HasPrefix(got, "sha256:") {
		t.Errorf("the image did not stay: %s", got)
	}
	b.docker("image", "rm", r.Builds[0].Tag)
}

func TestAnImageInUseIsToldNotForced(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	b.box("sbx-a", map[string]string{"Dockerfile": b.from("")})
	r := b.one(compose.Build{})
	b.build("sbx-a", r)
	container := b.docker("create", "--network", "none", r.Builds[0].Tag)
	if got := b.release("sbx-a"); !strings.Contains(got, "stays on the host") {
		t.Errorf("released: %s", got)
	}
	b.docker("rm", container)
	b.docker("image", "rm", r.Builds[0].Tag)
}

// The folder to build from is what the caller sent, not where a link leads.
func TestBuildsDoNotLeaveTheirFolder(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	b.box("sbx-a", map[string]string{"real/Dockerfile": b.from("")})
	ws := filepath.Join(b.root, "sbx-a", "workspace")
	for link, to := range map[string]string{"out": "/etc", "up": "..", "real/File": "/etc/passwd", "dir": "/etc"} {
		if err := os.Symlink(to, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []compose.Build{
		{Context: "out", Text: b.from("")}, {Context: "up", Text: b.from("")}, {Context: "../../..", Text: b.from("")},
		{Context: "missing", Text: b.from("")},
		{Context: "real", Dockerfile: "real/File"}, {Context: "real", Dockerfile: "dir/passwd"}, {Context: "real", Dockerfile: "real/none"},
	} {
		if got := b.build("sbx-a", b.one(x)); !strings.Contains(got, `"kind":"invalid"`) {
			t.Errorf("%+v: %s", x, got)
		}
	}
	b.release("sbx-a")
}

func TestPulls(t *testing.T) {
	t.Parallel()
	for name, shell := range buildShells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(t, shell...)
			for what, c := range map[string]struct {
				pulls []compose.Pull
				want  string
			}{
				"present":      {[]compose.Pull{{Image: b.base}, {Image: b.base, Never: true}}, "built"},
				"none":         {nil, "built"},
				"never":        {[]compose.Pull{{Image: b.base}, {Image: "sandboxer.invalid/x:1", Never: true}}, `"kind":"unsupported"`},
				"no registry":  {[]compose.Pull{{Image: "localhost:1/x:1", Platform: "linux/amd64"}}, `"kind":"unavailable"`},
				"always":       {[]compose.Pull{{Image: b.base, Always: true}}, `"kind":"unavailable"`},
				"not an image": {[]compose.Pull{{Image: "UPPER//case"}}, `"kind":"invalid"`},
				"an option":    {[]compose.Pull{{Image: "--all-tags"}}, `"kind":"invalid"`},
			} {
				if got := b.build("sbx-p", compose.Rendered{Pulls: c.pulls}); !strings.Contains(got, c.want) {
					t.Errorf("%s: %s", what, got)
				}
			}
		})
	}
}

func TestPullErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	for text, want := range map[string]string{
		`Error response from daemon: manifest for nginx:nope not found: manifest unknown: manifest unknown`:                                                                                        "unsupported",
		`pull access denied for nobody/x, repository does not exist or may require 'docker login': denied: requested access to the resource is denied`:                                             "unsupported",
		`Error response from daemon: Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on 10.0.0.1:53: no such host`:                                                   "unavailable",
		`Error response from daemon: Get "https://r.example/v2/": net/http: TLS handshake timeout`:                                                                                                 "unavailable",
		`toomanyrequests: You have reached your pull rate limit.`:                                                                                                                                  "unavailable",
		`Error response from daemon: Head "https://r.example/v2/x/manifests/1": unauthorized: authentication required`:                                                                             "unauthorized",
		`failed to resolve reference "registry.example/x:1": pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials`:          "unauthorized",
		`failed to resolve reference "registry.example/x:1": unexpected status from HEAD request to https://registry.example/v2/x/manifests/1: 401 Unauthorized`:                                   "unauthorized",
		`failed to resolve reference "docker.io/nobody/x:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`: "unsupported",
		`failed to register layer: write /usr/lib/x: no space left on device`:                                                                                                                      "exhausted",
		`no matching manifest for linux/arm64/v8 in the manifest list entries`:                                                                                                                     "unsupported",
	} {
		if got := b.do("sbx-p", "judge_pull "+shtext.Quote(text)+"\nanswer \"$judged\"", compose.Rendered{}, false); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestALayerThatAnotherBuildRemovedIsBuiltAgain(t *testing.T) {
	t.Parallel()
	for why, text := range map[string]string{
		"of a later stage": `unable to find image "sha256:fe40ee01"`, "of a parent": `unknown parent image ID fe40ee01`, "of a file": `layer does not exist`,
		"under a step's result": "failed to get digest sha256:fe40ee01: open /var/lib/docker/image/overlay2/imagedb/content/sha256/fe40ee01: no such file or directory",
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(t)
			b.box("sbx-a", map[string]string{"Dockerfile": b.from("") + "RUN true"})
			docker, err := exec.LookPath("docker")
			if err != nil {
				t.Fatal(err)
			}
			shim := t.TempDir()
			twice := "#!/bin/sh\nif [ \"$1\" = build ] && [ ! -e " + shim + "/two ]; then\n\t[ ! -e " + shim + "/one ] || : >" + shim + "/two\n\t: >" + shim +
				"/one\n\techo " + shtext.Quote(text) + " >&2\n\texit 1\nfi\nexec " + docker + " \"$@\"\n"
			if err := os.WriteFile(filepath.Join(shim, "docker"), []byte(twice), 0o755); err != nil {
				t.Fatal(err)
			}
			if got := b.do("sbx-a", "PATH="+shim+":$PATH\nbuild_images\nanswer built", b.one(compose.Build{}), false); got != "built" {
				t.Error(got)
			}
			b.release("sbx-a")
		})
	}
}
