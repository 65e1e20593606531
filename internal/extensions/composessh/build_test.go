package composessh

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

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
			if got := b.docker("image", "ls", "--quiet", "--filter", "dangling=true", "--filter", "label=test.run="+b.run); got != "" {
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
				Text: b.from(" AS wanted") + "ARG V\nARG EMPTY=unset\nCOPY in /in\nENV V=$V EMPTY=x$EMPTY\nRUN grep db /etc/hosts >/hosts\nFROM " +
					"wanted\nRUN false\n", ShmBytes: 1 << 20,
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

// A stage's image goes after what was built on it, whoever built it first.
func TestStagesAreReleasedTogether(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	r := b.one(compose.Build{})
	base := r.Builds[0]
	app := base
	app.Digest = strings.Repeat("f", 12) + base.Digest[12:]
	app.Tag, app.Parent = ociimage.Tag(app.Digest), base.Digest
	app.Text = "FROM " + base.Tag + "\nRUN echo more >/more\n"
	r.Builds = append(r.Builds, app)
	for _, id := range []string{"sbx-a", "sbx-b"} {
		b.box(id, map[string]string{"Dockerfile": b.from("") + "RUN echo base >/base\n"})
		if got := b.build(id, r); got != "built" {
			t.Fatal(got)
		}
	}
	b.release("sbx-a")
	if got := b.docker("run", "--rm", "--network", "none", app.Tag, "cat", "/base", "/more"); got != "base\nmore" {
		t.Errorf("after one of two was released: %s", got)
	}
	b.release("sbx-b")
}

// Any bytes but NUL, which no field can hold, come out as they went in.
func TestFieldsAreWhatTheyWereInEveryShell(t *testing.T) {
	t.Parallel()
	var texts []string
	for c := 1; c < 256; c++ {
		texts = append(texts, string([]byte{byte(c)}), "x"+string([]byte{byte(c), byte(c), '\\', '0', '1'})+"\n")
	}
	for name, shell := range buildShells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(t, shell...)
			got := b.do("sbx-f", "list="+shtext.Quote(shellList(texts))+"; set -f; IFS=,; for f in $list; do decode \"$f\"; printf '%s;' "+
				"\"$decoded\"; done", compose.Rendered{}, false)
			if want := strings.TrimSpace(strings.Join(texts, ";") + ";"); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}
