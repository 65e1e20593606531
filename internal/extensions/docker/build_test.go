package docker

import (
	"context"
	"crypto/rand"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// mark is the beginning of a test's Dockerfiles, by which its images are found again.
type mark struct{ run, base string }

func newMark(t testing.TB) mark {
	t.Helper()
	m := mark{run: strings.ToLower(rand.Text()), base: hosttest.Image(t)}
	t.Cleanup(func() {
		if left := m.all(t); len(left) > 0 {
			t.Errorf("images are left behind: %q", left)
			_ = exec.Command("docker", append([]string{"image", "rm", "--force"}, left...)...).Run()
		}
	})
	return m
}

func (m mark) from(as string) string {
	return "FROM " + m.base + as + "\nLABEL test.run=" + m.run + "\n"
}

// all are the ids of everything built, intermediate layers too.
func (m mark) all(t testing.TB) []string {
	return strings.Fields(docker(t, "image", "ls", "--all", "--quiet", "--no-trunc", "--filter", "label=test.run="+m.run))
}

func (m mark) tagged(t testing.TB) []string {
	return strings.Fields(docker(t, "image", "ls", "--format", "{{.Tag}}", "--filter", "label=test.run="+m.run, builtRepository))
}

func buildingFrom(files map[string]string, image extensions.Image, opts ...exttest.Option) []exttest.Option {
	return append([]exttest.Option{exttest.WithWorkspace(extensions.AccessRW, files),
		exttest.With(func(s *extensions.Spec) { s.Image = &image })}, opts...)
}

func cat(t testing.TB, b *Backend, h extensions.Handle, file string) string {
	t.Helper()
	r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"cat", file}})
	must(t, err)
	return string(r.Stdout) + string(r.Stderr)
}

func TestStagesAreBuiltOnceAndGoWithTheirLastSandbox(t *testing.T) {
	t.Parallel()
	m, s := newMark(t), newSite(t)
	b := s.open(t)
	files := map[string]string{
		"base/Dockerfile": m.from(" AS one") + "RUN echo one >/one\n" + m.from("") + "COPY --from=one /one /base\nRUN date +%N >/when\n",
		"app/Dockerfile":  "ARG PARENT_TAG\nFROM ${PARENT_TAG}\nARG WORD\nCOPY file /file\nRUN echo $WORD >/word\n",
		"app/file":        "content", "app/.dockerignore": "no*\n", "app/no-such": "x",
	}
	image := extensions.Image{Stages: []extensions.BuildStage{{Context: "base", Tag: "base:1", CacheKey: "v1"},
		{Context: "app", Tag: "app:1", ParentTag: "base:1", Args: map[string]string{"WORD": "a $b"}}}}
	first, spec := s.provision(t, b, buildingFrom(files, image)...)
	if got := cat(t, b, first, "/base") + cat(t, b, first, "/file") + cat(t, b, first, "/word"); got != "one\ncontenta $b\n" {
		t.Errorf("the image holds %q", got)
	}
	when := cat(t, b, first, "/when")
	digest, err := b.PrepareImage(t.Context(), spec)
	if again, err2 := s.open(t).PrepareImage(t.Context(), spec); err != nil || err2 != nil || again != digest {
		t.Errorf("%q %v, then %q %v", digest, err, again, err2)
	}
	second, _ := s.provision(t, b, buildingFrom(files, image)...)
	if got := cat(t, b, second, "/when"); got != when {
		t.Errorf("the same stage was built twice: %q and %q", when, got)
	}
	image.Stages = slices.Clone(image.Stages)
	image.Stages[0].CacheKey = "v2"
	third, _ := s.provision(t, b, buildingFrom(files, image)...)
	if n := len(m.tagged(t)); n != 4 {
		t.Errorf("%d images for two stages with two keys", n)
	}
	for i, h := range []extensions.Handle{first, second, third} {
		report, err := b.Teardown(t.Context(), h)
		must(t, err)
		if want := []int{4, 2, 0}[i]; len(m.tagged(t)) != want || slices.Contains(report.Removed, "images") != (i > 0) {
			t.Errorf("after %d went: %q, want %d; removed %q, residue %q", i+1, m.tagged(t), want, report.Removed, report.Residue)
		}
	}
	if left := m.all(t); len(left) > 0 {
		t.Errorf("layers are left: %q", left)
	}
}

func TestAKeptImageOutlivesItsSandbox(t *testing.T) {
	t.Parallel()
	m, s := newMark(t), newSite(t)
	b := s.open(t)
	files := map[string]string{"Dockerfile": m.from("") + "RUN date +%N >/when\n"}
	keep := extensions.Image{Build: &extensions.BuildStage{Context: "."}, Keep: true}
	h, spec := s.provision(t, b, buildingFrom(files, keep)...)
	when := cat(t, b, h, "/when")
	report, err := b.Teardown(t.Context(), h)
	must(t, err)
	if len(m.tagged(t)) != 1 || len(report.Residue) != 1 || !strings.Contains(report.Residue[0], "keeps") {
		t.Errorf("%q, %q", m.tagged(t), report.Residue)
	}
	h, _ = s.provision(t, b, buildingFrom(files, keep)...)
	if got := cat(t, b, h, "/when"); got != when {
		t.Errorf("it was built again")
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	p, err := newPlan(t.Context(), b.settings, spec)
	must(t, err)
	docker(t, "image", "rm", builtTag(p.builtKeys()[0]), keptRepository+":"+p.builtKeys()[0])
}

func TestManyCreatesOfOneImageBuildItOnce(t *testing.T) {
	t.Parallel()
	m, s := newMark(t), newSite(t)
	files := map[string]string{"Dockerfile": m.from("") + "RUN sleep 1; date +%N >/when\n"}
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for range 4 {
		all.Go(func() {
			b := s.open(t)
			spec := exttest.Spec(t, s.config, buildingFrom(files, extensions.Image{Build: &extensions.BuildStage{Context: "."}})...)
			h, _, err := b.Provision(t.Context(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"cat", "/when"}})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			seen[string(r.Stdout)]++
			mu.Unlock()
			if _, err := b.Teardown(t.Context(), h); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := 0; len(seen) != 1 {
		for _, times := range seen {
			n += times
		}
		t.Errorf("%d sandboxes of one image ran %d different ones", n, len(seen))
	}
}

func TestABuildThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	m, s := newMark(t), newSite(t)
	b := s.open(t)
	for name, c := range map[string]struct {
		files map[string]string
		image extensions.Image
		says  string
	}{
		"a step": {map[string]string{"Dockerfile": m.from("") + "RUN echo 1 >/x\nRUN echo the very reason; exit 7\n"},
			extensions.Image{Build: &extensions.BuildStage{Context: "."}}, "the very reason"},
		"a later stage": {map[string]string{"a/Dockerfile": m.from("") + "RUN echo 1 >/x\n", "b/Dockerfile": "FROM a\nCOPY none /\n"},
			extensions.Image{Stages: []extensions.BuildStage{{Context: "a", Tag: "a"}, {Context: "b", Tag: "b", ParentTag: "a"}}}, "none"},
	} {
		spec := exttest.Spec(t, s.config, buildingFrom(c.files, c.image)...)
		if _, err := b.PrepareImage(t.Context(), spec); !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), c.says) ||
			extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v; remedy %q", name, err, extensions.RemedyOf(err))
		}
		h, _, err := b.Provision(t.Context(), spec)
		if !extensions.IsKind(err, extensions.KindInvalid) || !h.IsZero() {
			t.Errorf("%s: %v, handle %s", name, err, h.Encode())
		}
		if left := m.all(t); len(left) > 0 {
			t.Errorf("%s: left %q", name, left)
		}
	}
}

// Another build's cleanup may take a layer that this one has found, whatever the engine then says.
func TestALayerThatAnotherBuildRemovedIsBuiltAgain(t *testing.T) {
	t.Parallel()
	m, s := newMark(t), newSite(t)
	b := s.open(t)
	files := map[string]string{"Dockerfile": m.from("") + "RUN echo 1 >/x\n"}
	spec := exttest.Spec(t, s.config, buildingFrom(files, extensions.Image{Build: &extensions.BuildStage{Context: "."}})...)
	said := func(layer string) string {
		return `{"stream":" ---\u003e ` + layer + `\n"}` + "\n" + `{"errorDetail":{"message":"it broke"},"error":"it broke"}` + "\n"
	}
	unseen := `{"errorDetail":{"message":"unable to find image \"sha256:21fc\""},"error":"unable to find image \"sha256:21fc\""}` + "\n"
	s.gate.answerInstead("/build?", said("0123456789ab"), said("ba9876543210"), unseen)
	if _, err := b.PrepareImage(t.Context(), spec); err != nil {
		t.Errorf("three builds lost a layer, and the fourth did not: %v", err)
	}
	_, _, err := b.release(t.Context(), []string{builtKey(t, m)})
	must(t, err)
	there := docker(t, "image", "inspect", "--format", "{{.Id}}", hosttest.Image(t))
	s.gate.answerInstead("/build?", said(strings.TrimPrefix(there, "sha256:")[:12]))
	if _, err := b.PrepareImage(t.Context(), spec); !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "it broke") {
		t.Errorf("a build that lost no layer: %v", err)
	}
}

// builtKey is the key of the one image that was built.
func builtKey(t testing.TB, m mark) string {
	t.Helper()
	tags := m.tagged(t)
	if len(tags) != 1 {
		t.Fatalf("there is %q", tags)
	}
	return tags[0]
}

func TestABuildCutShortLeavesNothing(t *testing.T) {
	t.Parallel()
	m, s := newMark(t), newSite(t)
	b := s.open(t)
	files := map[string]string{"Dockerfile": m.from("") + "RUN echo 1 >/x\nRUN sleep 60\n"}
	spec := exttest.Spec(t, s.config, buildingFrom(files, extensions.Image{Build: &extensions.BuildStage{Context: "."}})...)
	ctx, cancel := context.WithCancel(t.Context())
	ctx = extensions.WithProgress(ctx, func(_, detail string) {
		if strings.Contains(detail, "sleep 60") {
			cancel()
		}
	})
	if _, err := b.PrepareImage(ctx, spec); err == nil {
		t.Error("a cancelled build succeeded")
	}
	if left := m.all(t); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	steps := func() string {
		return docker(t, "container", "ls", "--all", "--quiet", "--filter", "label=test.run="+m.run)
	}
	for end := time.Now().Add(time.Minute); steps() != ""; time.Sleep(100 * time.Millisecond) { // the engine ends them after its answer
		if time.Now().After(end) {
			t.Fatalf("containers of steps are left: %s", steps())
		}
	}
}

// A step has the limits of its sandbox, no network, and no more of the host than a sandbox.
func TestStepsHaveWalls(t *testing.T) {
	t.Parallel()
	m, s := newMark(t), newSite(t)
	b := s.open(t)
	files := map[string]string{"Dockerfile": m.from("") + `RUN ls /sys/class/net >/net; cat /sys/fs/cgroup/memory/memory.limit_in_bytes >/memory 2>/dev/null || cat /sys/fs/cgroup/memory.max >/memory
RUN sleep 2; cat /sys/fs/cgroup/pids/pids.max >/pids 2>/dev/null || cat /sys/fs/cgroup/pids.max >/pids
`}
	memory, pids := int64(64), int64(77)
	h, _ := s.provision(t, b, buildingFrom(files, extensions.Image{Build: &extensions.BuildStage{Context: "."}},
		exttest.With(func(sp *extensions.Spec) { sp.Resources.MemoryMB, sp.Resources.Pids = &memory, &pids }))...)
	for file, want := range map[string]string{"/net": "lo\n", "/memory": "67108864\n", "/pids": "77\n"} {
		if got := cat(t, b, h, file); got != want {
			t.Errorf("%s in a step: %q, want %q", file, got, want)
		}
	}
	_, err := b.Teardown(t.Context(), h)
	must(t, err)
}

func TestBuildKitBuildsWhereAskedFor(t *testing.T) {
	t.Parallel()
	m, s := newMark(t), newSite(t)
	b := s.open(t)
	kit := exttest.With(func(sp *extensions.Spec) { sp.Options = map[string]any{"builder": "buildkit"} })
	files := map[string]string{"a/Dockerfile": m.from("") + "RUN ls /sys/class/net >/net\n", "b/Dockerfile": "FROM a\nCOPY x /x\n", "b/x": "1",
		"b/Bad": "FROM a\nRUN echo the very reason; exit 7\n"}
	stages := []extensions.BuildStage{{Context: "a", Tag: "a"}, {Context: "b", Tag: "b", ParentTag: "a"}}
	var told []string
	var mu sync.Mutex
	ctx := extensions.WithProgress(t.Context(), func(_, detail string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, detail)
	})
	spec := exttest.Spec(t, s.config, buildingFrom(files, extensions.Image{Stages: stages}, kit)...)
	h, _, err := b.Provision(ctx, spec)
	must(t, err)
	if got := cat(t, b, h, "/net") + cat(t, b, h, "/x"); got != "lo\n1" {
		t.Errorf("the image holds %q", got)
	}
	mu.Lock()
	if !slices.ContainsFunc(told, func(d string) bool { return strings.Contains(d, "COPY x /x") }) {
		t.Errorf("no step was told: %q", told)
	}
	mu.Unlock()
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	stages[1].Dockerfile = "Bad"
	_, _, err = b.Provision(t.Context(), exttest.Spec(t, s.config, buildingFrom(files, extensions.Image{Stages: stages}, kit)...))
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "the very reason") {
		t.Errorf("%v", err)
	}
}

func TestWhatNoBuilderMaySeeIsRefusedInThePlan(t *testing.T) {
	t.Parallel()
	build := extensions.Image{Build: &extensions.BuildStage{Context: "."}}
	for name, c := range map[string]struct {
		files map[string]string
		image extensions.Image
	}{
		"a fetch":       {map[string]string{"Dockerfile": "FROM a\nADD http://h/x /x\n"}, build},
		"a mount":       {map[string]string{"Dockerfile": "FROM a\nRUN --mount=type=cache,target=/x id\n"}, build},
		"our label":     {map[string]string{"Dockerfile": "FROM a\nLABEL sandboxer.build=x\n"}, build},
		"our name":      {map[string]string{"Dockerfile": "FROM sandboxer.invalid/kept:1\n"}, build},
		"no Dockerfile": {map[string]string{"x": "1"}, build},
		"outside":       {map[string]string{"x": "1"}, extensions.Image{Build: &extensions.BuildStage{Context: "../x"}}},
		"no stages":     {nil, extensions.Image{Stages: []extensions.BuildStage{}}},
		"a cycle": {map[string]string{"Dockerfile": "FROM a\n"},
			extensions.Image{Stages: []extensions.BuildStage{{Context: ".", Tag: "a", ParentTag: "a"}}}},
	} {
		cfg := extensions.Config{Binding: "ext.docker", Account: "a/b"}
		spec := exttest.Spec(t, cfg, buildingFrom(c.files, c.image)...)
		if _, err := New().(extensions.SpecChecker).CheckSpec(t.Context(), cfg, spec); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
