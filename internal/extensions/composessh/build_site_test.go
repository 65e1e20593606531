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
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// buildShells are those that hosts have; each must run every script.
var buildShells = map[string][]string{"dash": {"dash"}, "busybox": {"busybox", "sh"}, "bash": {"bash"}}

// standIn is the part of remote's prelude that answers need.
const standIn = `answer() { printf '%s\n' "$1"; }
progress() { :; }
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
	b := &builder{t: t, shell: shell, root: filepath.Join(t.TempDir(), "root"), run: strings.ToLower(rand.Text()), base: base}
	if err := os.Mkdir(b.root, 0o700); err != nil {
		t.Fatal(err)
	}
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
	return strings.Fields(b.docker("image", "ls", "--all", "--quiet", "--no-trunc", "--filter", "label=test.run="+b.run))
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
	return "FROM " + b.base + as + "\nLABEL test.run=" + b.run + "\n"
}

func (b *builder) command(ctx context.Context, id, op string, r compose.Rendered, keep bool, all logins) *exec.Cmd {
	vars := imageVars(r, "workspace", keep, all)
	vars["root"], vars["id"] = b.root, id
	var text strings.Builder
	for k, v := range vars {
		text.WriteString(k + "=" + shtext.Quote(v) + "\n")
	}
	text.WriteString(standIn + script("images", "pull", "build") + "use_root\nuse_box \"$id\"\nmkdir -p \"$box\"\n" + op + "\n")
	cmd := exec.CommandContext(ctx, b.shell[0], append(slices.Clone(b.shell[1:]), "-s")...)
	cmd.Stdin = strings.NewReader(text.String())
	return cmd
}

// do runs an operation and returns what it answered.
func (b *builder) do(id, op string, r compose.Rendered, keep bool) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := b.command(ctx, id, op, r, keep, nil)
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
	return b.do(id, "pull_images\nbuild_images\nanswer built", r, false)
}

func (b *builder) release(id string) string {
	b.t.Helper()
	return b.do(id, "release_images\nanswer \"released:$warnings\"", compose.Rendered{}, false)
}

// one is a single build of the given fields, with a digest of its own.
func (b *builder) one(x compose.Build) compose.Rendered {
	x.Digest = strings.ToLower(b.run + strings.Repeat("0", 64))[:64]
	x.Tag = ociimage.Tag(x.Digest)
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
