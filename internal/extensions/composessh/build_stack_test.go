package composessh

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// Sandboxes of one stack share what is built for it; it goes with the last.
func TestStacksShareWhatTheyBuild(t *testing.T) {
	t.Parallel()
	marks := newBuilder(t)
	s := newSite(t)
	b := s.open(t)
	file := `services: {web: {build: {context: ./app, args: {WORD: "a $$b"}}, command: ["sh", "-c", "sleep 1000"], stop_signal: KILL}}`
	made := []extensions.Handle{}
	for range 2 {
		made = append(made, s.provision(t, b, s.spec(t, func(sp *extensions.Spec) {
			sp.Compose = &extensions.Compose{Files: []string{"compose.yaml"}}
			sp.Workspace.Source = newFolder(t, map[string]string{
				"compose.yaml": file, "app/Dockerfile": marks.from(" AS one") + "ARG WORD\nRUN echo \"$WORD\" >/word\n" + marks.from("") +
					"COPY --from=one /word /word\n",
			})
		})))
	}
	for _, h := range made {
		if r := run(t, b, h, extensions.ExecRequest{Command: []string{"cat", "/word"}}); string(r.Stdout) != "a $b\n" {
			t.Errorf("the image holds %q", r.Stdout)
		}
	}
	tagged := func() string {
		return marks.docker("image", "ls", "--quiet", "--filter", "label=test.run="+marks.run, ociimage.Repository)
	}
	if got := strings.Fields(tagged()); len(got) != 1 {
		t.Errorf("images: %v", got)
	}
	for i, h := range made {
		if _, err := b.Teardown(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		if got := tagged(); (got == "") != (i == 1) {
			t.Errorf("after %d of 2 went: %q", i+1, got)
		}
	}
}

func TestAStackThatCannotBeBuiltIsNotMade(t *testing.T) {
	t.Parallel()
	marks := newBuilder(t)
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t, func(sp *extensions.Spec) {
		sp.Image = &extensions.Image{Build: &extensions.BuildStage{Context: "."}}
		sp.Workspace.Source = newFolder(t, map[string]string{"Dockerfile": marks.from("") + "RUN echo 1 >/x\nRUN echo the very reason; exit 7\n"})
	})
	h, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "the very reason") || extensions.RemedyOf(err) == "" {
		t.Errorf("%v; remedy %q", err, extensions.RemedyOf(err))
	}
	if !h.IsZero() {
		s.tearDownAtEnd(t, spec.ID)
		t.Error("a handle of nothing")
	}
	if left := s.residue(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
