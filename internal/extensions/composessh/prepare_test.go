package composessh

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// preparing is a site with a spec whose image is built, and whose builds can be told from those of other tests.
type preparing struct {
	*site
	spec  extensions.Spec
	marks *builder
}

func newPreparing(t *testing.T, steps string) preparing {
	t.Helper()
	p := preparing{site: newSite(t), marks: newBuilder(t)}
	p.spec = p.site.spec(t, func(sp *extensions.Spec) {
		sp.Image = &extensions.Image{Build: &extensions.BuildStage{Context: "."}}
		sp.Workspace.Source = newFolder(t, map[string]string{"Dockerfile": p.marks.from("") + steps, "run.sh": "echo ran\n"})
	})
	return p
}

// built are the ids of the site's images.
func (p preparing) built() string {
	return p.marks.docker("image", "ls", "--quiet", "--no-trunc", "--filter", "label=test.run="+p.marks.run, ociimage.Repository)
}

// gone waits until the loop has removed everything.
func (p preparing) gone(t *testing.T, before []string) {
	t.Helper()
	waitFor(func() bool { return p.built() == "" && len(p.left(t, before)) == 0 })
	p.settled(t)
	if left := p.left(t, before); len(left) > 0 || p.built() != "" {
		t.Errorf("left behind: %q, images %q", left, p.built())
	}
}

func TestAPreparedImageWaitsForItsFirstSandbox(t *testing.T) {
	t.Parallel()
	p := newPreparing(t, "COPY run.sh /run.sh\n")
	before, b := p.residue(t), p.open(t)
	digest, err := b.PrepareImage(t.Context(), p.spec)
	must(t, err)
	image := p.built()
	if image == "" || len(p.containers(t)) > 0 {
		t.Fatalf("after the preparation: image %q, containers %v", image, p.containers(t))
	}
	if again, err := p.open(t).PrepareImage(t.Context(), p.spec); err != nil || again != digest || p.built() != image {
		t.Errorf("prepared again: %s, not %s, %v; image %s", again, digest, err, p.built())
	}
	h := p.provision(t, b, p.spec)
	if r := run(t, b, h, extensions.ExecRequest{Command: []string{"sh", "/run.sh"}}); string(r.Stdout) != "ran\n" || p.built() != image {
		t.Errorf("it runs %q of the image %s, not %s", r.Stdout, p.built(), image)
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	p.gone(t, before)
}

func TestAPreparedImageThatNobodyUsesGoes(t *testing.T) {
	t.Parallel()
	p := newPreparing(t, "COPY run.sh /run.sh\n")
	before, b := p.residue(t), p.open(t)
	_, err := b.PrepareImage(t.Context(), p.spec)
	must(t, err)
	h := p.provision(t, b, p.site.spec(t)) // what leaves the root removes no image that waits
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	waiting, err := filepath.Glob(filepath.Join(p.root, "images", "*.for.prepared"))
	if err != nil || len(waiting) != 1 || p.built() == "" {
		t.Fatalf("what waits: %v, %v; image %q", waiting, err, p.built())
	}
	text, err := os.ReadFile(waiting[0])
	must(t, err)
	bootID, _, _ := strings.Cut(string(text), " ")
	must(t, os.WriteFile(waiting[0], []byte(bootID+" 1 \n"), 0o600)) // its time was over long ago
	p.gone(t, before)
}

func TestAPreparationThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newPreparing(t, "RUN echo 1 >/x\nRUN echo the very reason; exit 7\n")
	before := p.residue(t)
	_, err := p.open(t).PrepareImage(t.Context(), p.spec)
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "the very reason") {
		t.Error(err)
	}
	p.gone(t, before)
}

func TestAPreparationThatIsCutOffLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"step locked", "step filled", "step prepared"} {
		t.Run("client/"+strings.TrimPrefix(step, "step "), func(t *testing.T) {
			t.Parallel()
			p := newPreparing(t, "COPY run.sh /run.sh\n")
			before, b := p.residue(t), p.open(t)
			reached := p.dieAt(t, b, step)
			if _, err := b.PrepareImage(t.Context(), p.spec); err == nil || !reached() {
				t.Fatalf("the client lived: %v", err)
			}
			p.gate.open()
			p.settled(t)
			if step == "step prepared" { // it is whole, whoever has heard of it
				h := p.provision(t, p.open(t), p.spec)
				_, err := b.Teardown(t.Context(), h)
				must(t, err)
			}
			p.gone(t, before)
		})
		t.Run("script/"+strings.TrimPrefix(step, "step "), func(t *testing.T) {
			t.Parallel()
			p := newPreparing(t, "COPY run.sh /run.sh\n")
			before, b := p.residue(t), p.open(t)
			reached := at(t, b, step, func() {
				boxes, _ := filepath.Glob(filepath.Join(p.root, "prepare-*"))
				for _, box := range boxes {
					if err := killHolder(box); err != nil {
						t.Error(err)
					}
				}
			})
			if _, err := b.PrepareImage(t.Context(), p.spec); err == nil || !reached() {
				t.Fatalf("the script lived: %v", err)
			}
			_, err := b.PrepareImage(t.Context(), p.spec)
			must(t, err)
			h := p.provision(t, b, p.spec)
			_, err = b.Teardown(t.Context(), h)
			must(t, err)
			p.gone(t, before)
		})
	}
}

func TestACanceledPreparationStartsNothing(t *testing.T) {
	t.Parallel()
	p := newPreparing(t, "COPY run.sh /run.sh\n")
	before, b := p.residue(t), p.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.PrepareImage(ctx, p.spec); err == nil {
		t.Error("it succeeded")
	}
	p.gone(t, before)
}
