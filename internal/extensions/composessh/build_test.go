package composessh

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/hosttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// buildShells are those that hosts have; each must run every script.
var buildShells = map[string][]string{"dash": {"dash"}, "busybox": {"busybox", "sh"}, "bash": {"bash"}}

// standIn is the part of remote's prelude that answers need.
const standIn = `answer() { printf '%s\n' "$1"; }
json_string() {
	if [ $# -gt 0 ]; then printf '%s' "$1"; else cat; fi | tr '\000-\037' ' ' | sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$/"/'
}
`

// builder runs sh/build.sh on this machine's Docker, in a host root of its own.
type builder struct {
	t     *testing.T
	shell []string
	root  string
	run   string // marks all images of the test
	base  string // image to build on
}

func newBuilder(t *testing.T, shell ...string) *builder {
	t.Helper()
	base := hosttest.Image(t)
	b := &builder{t: t, shell: shell, root: t.TempDir(), run: strings.ToLower(rand.Text()), base: base}
	if len(shell) == 0 {
		b.shell = []string{"sh"}
	}
	if _, err := exec.LookPath(b.shell[0]); err != nil {
		t.Skipf("no %s here", b.shell[0])
	}
	t.Cleanup(func() {
		if left := b.images(); len(left) > 0 {
			t.Errorf("images are left behind: %v", left)
			b.docker(append([]string{"image", "rm", "--force"}, left...)...)
		}
	})
	return b
}

func (b *builder) docker(args ...string) string {
	out, _ := exec.CommandContext(context.Background(), "docker", args...).CombinedOutput()
	return strings.TrimSpace(string(out))
}

// images lists all that the test made, intermediate ones too.
func (b *builder) images() []string {
	return strings.Fields(b.docker("image", "ls", "--all", "--quiet", "--no-trunc", "--filter", "label=sandboxer.test.run="+b.run))
}

// box makes the folder of a sandbox with a context below workspace.
func (b *builder) box(id string, files map[string]string) {
	b.t.Helper()
	for name, content := range files {
		file := filepath.Join(b.root, id, "workspace", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// from is the beginning of a Dockerfile whose images the test can find again.
func (b *builder) from(as string) string {
	return "FROM " + b.base + as + "\nLABEL sandboxer.test.run=" + b.run + "\n"
}

func (b *builder) command(ctx context.Context, id, op string, r compose.Rendered, keep bool) *exec.Cmd {
	vars := imageVars(r, false, keep)
	vars["root"], vars["id"] = b.root, id
	var text strings.Builder
	for k, v := range vars {
		text.WriteString(k + "=" + remote.Quote(v) + "\n")
	}
	text.WriteString(standIn + script("build") + "use_root\nuse_box \"$id\"\nmkdir -p \"$box\"\n" + op + "\n")
	cmd := exec.CommandContext(ctx, b.shell[0], append(slices.Clone(b.shell[1:]), "-s")...)
	cmd.Stdin = strings.NewReader(text.String())
	return cmd
}

// do runs an operation and returns what it answered.
func (b *builder) do(id, op string, r compose.Rendered, keep bool) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := b.command(ctx, id, op, r, keep)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		b.t.Errorf("%s of %s: %v", op, id, err)
	}
	if stderr.Len() > 0 {
		b.t.Errorf("%s of %s says on stderr: %s", op, id, stderr.String())
	}
	return strings.TrimSpace(out.String())
}

func (b *builder) build(id string, r compose.Rendered) string {
	b.t.Helper()
	return b.do(id, "build_images\nanswer built", r, false)
}

func (b *builder) release(id string) string {
	b.t.Helper()
	return b.do(id, "release_images\nanswer \"released:$warnings\"", compose.Rendered{}, false)
}

// one is a single build of the given fields, with a digest of its own.
func (b *builder) one(x compose.Build) compose.Rendered {
	x.Digest = strings.ToLower(b.run + strings.Repeat("0", 64))[:64]
	x.Tag = compose.BuildRepository + ":" + x.Digest
	if x.Context == "" {
		x.Context = "."
	}
	if x.Dockerfile == "" && x.Text == "" {
		x.Dockerfile = "Dockerfile"
	}
	x.Network = "none"
	return compose.Rendered{Builds: []compose.Build{x}}
}

func (b *builder) multistage() string {
	return b.from(" AS one") + "RUN echo one >/one\n" + b.from(" AS two") + "RUN echo two >/two\n" + b.from("") +
		"COPY --from=one /one /one\nCOPY --from=two /two /two\nRUN echo three >/three\n"
}

func TestSandboxesShareABuild(t *testing.T) {
	t.Parallel()
	for name, shell := range buildShells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(t, shell...)
			r := b.one(compose.Build{})
			tag := r.Builds[0].Tag
			for _, id := range []string{"sbx-a", "sbx-b"} {
				b.box(id, map[string]string{"Dockerfile": b.multistage()})
				if got := b.build(id, r); got != "built" {
					t.Fatalf("%s: %s", id, got)
				}
				if got := b.docker("image", "inspect", "--format", `{{index .Config.Labels "sandboxer.build"}}`, tag); got != r.Builds[0].Digest {
					t.Fatalf("%s: the image's label: %s", id, got)
				}
			}
			if got := b.docker("run", "--rm", "--network", "none", tag, "cat", "/one", "/two", "/three"); got != "one\ntwo\nthree" {
				t.Errorf("the image holds %q", got)
			}
			if got := b.docker("image", "ls", "--quiet", "--filter", "dangling=true", "--filter", "label=sandboxer.test.run="+b.run); got != "" {
				t.Errorf("a build left nameless images: %s", got)
			}
			if got := b.release("sbx-a"); got != "released:" {
				t.Error(got)
			}
			if len(b.images()) == 0 {
				t.Fatal("the image went while another sandbox uses it")
			}
			if got := b.release("sbx-b"); got != "released:" {
				t.Error(got)
			}
			if _, err := os.Stat(filepath.Join(b.root, "images")); !os.IsNotExist(err) {
				t.Errorf("the folder of locks stays: %v", err)
			}
		})
	}
}

func TestBuildsAtTheSameTimeBuildOnce(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	r := b.one(compose.Build{})
	ids := []string{"sbx-a", "sbx-b", "sbx-c", "sbx-d"}
	var all sync.WaitGroup
	made := make([]string, len(ids))
	for i, id := range ids {
		b.box(id, map[string]string{"Dockerfile": b.from("") + "RUN sleep 1\n"})
		all.Go(func() {
			made[i] = b.do(id, `build_images; answer "$(manifest_get image_ids; echo "built:$value")"`, r, false)
		})
	}
	all.Wait()
	builders := 0
	for i, got := range made {
		switch {
		case strings.HasPrefix(got, "built:sha256:"):
			builders++
		case got != "built:":
			t.Errorf("%s: %s", ids[i], got)
		}
	}
	if builders != 1 {
		t.Errorf("%d of them built: %v", builders, made)
	}
	for _, id := range ids {
		all.Go(func() { b.release(id) })
	}
	all.Wait()
}

// What a build is given arrives as it was, whatever it holds.
func TestBuildFieldsArriveWhole(t *testing.T) {
	t.Parallel()
	const nasty = "a|b,c;d e\t$HOME `id` $(id) 'q' \"d\" \\0101 %s %b\nsecond"
	for name, shell := range buildShells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(t, shell...)
			r := b.one(compose.Build{
				Context: "sub dir/$x", Target: "wanted", Args: map[string]string{"V": nasty, "EMPTY": ""}, ExtraHosts: []string{"db:10.1.2.3"},
				Text: b.from(" AS wanted") + "ARG V\nARG EMPTY=unset\nCOPY in /in\nENV V=$V EMPTY=x$EMPTY\nRUN grep db /etc/hosts >/hosts\nFROM wanted\nRUN false\n", ShmBytes: 1 << 20,
			})
			b.box("sbx-a", map[string]string{"sub dir/$x/in": "content"})
			if got := b.build("sbx-a", r); got != "built" {
				t.Fatal(got)
			}
			got := b.docker("run", "--rm", "--network", "none", r.Builds[0].Tag, "sh", "-c", `cat /in /hosts; printf "%s" "$EMPTY$V"`)
			if want := "content10.1.2.3\tdb\nx" + nasty; got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if left, _ := filepath.Glob(filepath.Join(b.root, "sbx-a", "*")); len(left) != 2 {
				t.Errorf("beside workspace and manifest there is %v", left)
			}
			b.release("sbx-a")
		})
	}
}

func TestAFailedBuildSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	for what, c := range map[string]struct{ dockerfile, kind, text string }{
		"step":        {b.from(" AS one") + "RUN echo 1 >/x\n" + b.from("") + "RUN echo 2 >/y\nRUN echo the reason; exit 3\n", "invalid", "the reason"},
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
			b.box("sbx-a", map[string]string{"Dockerfile": b.from(" AS one") + "RUN echo 1 >/one\n" + b.from("") + "COPY --from=one /one /one\nRUN sleep 3\n"})
			r := b.one(compose.Build{})
			cmd := b.command(t.Context(), "sbx-a", "build_images", r, false)
			ownGroup(cmd)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(30 * time.Second); len(b.images()) < 3 && time.Now().Before(deadline); {
				time.Sleep(50 * time.Millisecond)
			}
			killGroup(cmd)
			_ = cmd.Wait()
			if again {
				if got := b.build("sbx-a", r); got != "built" {
					t.Fatal(got)
				}
			}
			// The daemon may still be at the step it was killed in.
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
				if b.docker("ps", "--all", "--quiet", "--filter", "label=sandboxer.test.run="+b.run) == "" {
					break
				}
			}
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
		{Context: "out", Text: b.from("")}, {Context: "up", Text: b.from("")}, {Context: "../../..", Text: b.from("")}, {Context: "missing", Text: b.from("")},
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
				"never":        {[]compose.Pull{{Image: b.base}, {Image: "sandboxer.invalid/x:1", Never: true}}, `"kind":"invalid"`},
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
		`Error response from daemon: manifest for nginx:nope not found: manifest unknown: manifest unknown`:                                            "invalid",
		`pull access denied for nobody/x, repository does not exist or may require 'docker login': denied: requested access to the resource is denied`: "invalid",
		`Error response from daemon: Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on 10.0.0.1:53: no such host`:       "unavailable",
		`Error response from daemon: Get "https://r.example/v2/": net/http: TLS handshake timeout`:                                                     "unavailable",
		`toomanyrequests: You have reached your pull rate limit.`:                                                                                      "unavailable",
		`Error response from daemon: Head "https://r.example/v2/x/manifests/1": unauthorized: authentication required`:                                 "unauthorized",
		`failed to register layer: write /usr/lib/x: no space left on device`:                                                                          "exhausted",
		`no matching manifest for linux/arm64/v8 in the manifest list entries`:                                                                         "invalid",
	} {
		if got := b.do("sbx-p", "judge_pull "+remote.Quote(text)+"\nanswer \"$judged\"", compose.Rendered{}, false); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
