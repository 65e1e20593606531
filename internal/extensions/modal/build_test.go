package modal_test

import (
	"context"
	"strings"
	"testing"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal/modaltest"
)

// from is a spec whose image is built from files of its workspace.
func from(t *testing.T, cfg extensions.Config, files map[string]string, stages ...extensions.BuildStage) extensions.Spec {
	t.Helper()
	return exttest.Spec(t, cfg, exttest.WithWorkspace(extensions.AccessRW, files), exttest.With(func(s *extensions.Spec) {
		if s.Image = (&extensions.Image{Stages: stages}); len(stages) == 1 {
			s.Image = &extensions.Image{Build: &stages[0]}
		}
	}))
}

func count(v *modaltest.Vendor, method string, of func(modaltest.Request) bool) (n int) {
	for _, r := range v.Requests() {
		if r.Method == method && (of == nil || of(r)) {
			n++
		}
	}
	return n
}

// An image is built at the vendor from a Dockerfile with its files, arguments and an image before it, once for all.
func TestAnImageIsBuiltFromAWorkspace(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	files := map[string]string{"base/Dockerfile": "FROM registry.example/alpine:3.20\nARG WHO=nobody\nENV NAME=$WHO\nRUN echo base >/base\n",
		"app/Dockerfile": "ARG PARENT_TAG\nFROM base:1\nWORKDIR /opt\nCOPY . app/\nCOPY run.sh /usr/local/\nRUN cat app/a.txt /base >made\n",
		"app/a.txt":      "some text\n", "app/run.sh": "echo ran", "app/.dockerignore": "left-out\n", "app/left-out": "x", "other": "x"}
	spec := from(t, cfg, files, extensions.BuildStage{Context: "base", Tag: "base:1", Args: map[string]string{"WHO": "me"}},
		extensions.BuildStage{Context: "app", ParentTag: "base:1"})
	spec.Registries = extensions.Registries{"registry.example": {Username: "user",
		Password: func(context.Context) (extensions.Secret, error) { return extensions.NewSecret("sesame"), nil }}}
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	_, err = b.WaitReady(t.Context(), spec, h)
	must(t, err)
	r, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: "cat /opt/made; sh /usr/local/run.sh; ls /opt/app"})
	if err != nil || string(r.Stdout) != "some text\nbase\nran\nDockerfile\na.txt\nrun.sh\n" {
		t.Errorf("%q %q, %v", r.Stdout, r.Stderr, err)
	}
	brings := func(r modaltest.Request) bool { return r.Message.(*pb.MountPutFileRequest).HasData() }
	sent, joins := count(v, "MountPutFile", brings), count(v, "ImageJoinStreaming", nil)
	if sent != 3 || joins != 2 {
		t.Errorf("%d files were sent, and %d builds followed", sent, joins)
	}
	again := spec
	again.ID = exttest.Spec(t, cfg).ID
	again.Labels = exttest.Labels(again)
	_, _, err = b.Provision(t.Context(), again)
	must(t, err)
	if n, m := count(v, "MountPutFile", brings), count(v, "ImageJoinStreaming", nil); n != sent || m != joins {
		t.Errorf("the second time %d files were sent, and %d builds followed", n-sent, m-joins)
	}
	for _, text := range outside(t, cfg) {
		if strings.Contains(text, "sesame") && !strings.HasPrefix(text, "SecretGetOrCreate") {
			t.Errorf("the password is in %s", text)
		}
	}
}

// What a build printed tells why it failed. Nothing was made, and no other place would build it.
func TestAFailedBuildTellsWhy(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	spec := from(t, cfg, map[string]string{"Dockerfile": "FROM alpine\nRUN echo the reason; exit 3\n"}, extensions.BuildStage{Context: "."})
	h, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "the reason") || !h.IsZero() || len(v.Sandboxes()) > 0 {
		t.Errorf("%q, %v", h.Encode(), err)
	}
}

func TestWhatAVendorsBuilderIsNotTold(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	b := open(t, cfg)
	for name, c := range map[string]struct {
		files map[string]string
		stage extensions.BuildStage
		plan  bool // a plan refuses it already
	}{
		"a stage that is not the last": {map[string]string{"Dockerfile": "FROM alpine AS one\nFROM one AS two\n"},
			extensions.BuildStage{Context: ".", Target: "one"}, true},
		"another platform": {map[string]string{"Dockerfile": "FROM --platform=linux/arm64 alpine\n"}, extensions.BuildStage{Context: "."}, true},
		"a large file": {map[string]string{"Dockerfile": "FROM alpine\nCOPY big /\n", "big": strings.Repeat("x", 5<<20)},
			extensions.BuildStage{Context: "."}, false},
	} {
		spec := from(t, cfg, c.files, c.stage)
		_, err := modal.New().(extensions.SpecChecker).CheckSpec(t.Context(), cfg, spec)
		if (err != nil) != c.plan {
			t.Errorf("%s: a plan says %v", name, err)
		}
		if _, _, err := b.Provision(t.Context(), spec); !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
