package e2b_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/e2btest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// imager is a backend at a vendor of its own.
type imager struct {
	extensions.Backend
	extensions.Execer
	extensions.ImagePreparer
	t   *testing.T
	cfg extensions.Config
	v   *e2btest.Vendor
}

func imagerFor(t *testing.T) imager {
	t.Helper()
	cfg := at(t)
	b, err := e2b.New().Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return imager{b, b.(extensions.Execer), b.(extensions.ImagePreparer), t, cfg, vendorOf(cfg).Vendor}
}

// of is a spec that runs an image, built from files if it has any.
func (i imager) of(image extensions.Image, files map[string]string, opts ...exttest.Option) extensions.Spec {
	i.t.Helper()
	if files != nil {
		opts = append(opts, exttest.WithWorkspace(extensions.AccessRW, files))
	}
	return exttest.Spec(i.t, i.cfg, append(opts, exttest.With(func(s *extensions.Spec) { s.Image = &image }))...)
}

func (i imager) run(spec extensions.Spec) extensions.Handle {
	i.t.Helper()
	h, _, err := i.Provision(i.t.Context(), spec)
	must(i.t, err)
	_, err = i.WaitReady(i.t.Context(), spec, h)
	must(i.t, err)
	return h
}

func (i imager) end(h extensions.Handle) extensions.CleanupReport {
	i.t.Helper()
	r, err := i.Teardown(i.t.Context(), h)
	must(i.t, err)
	return r
}

func (i imager) says(h extensions.Handle, script string) string {
	i.t.Helper()
	r, err := i.Exec(i.t.Context(), h, extensions.ExecRequest{Shell: script, Dir: "/"})
	must(i.t, err)
	return string(r.Stdout) + string(r.Stderr)
}

// asked counts the vendor's calls of an operation.
func (i imager) asked(on string) (n int) {
	for _, r := range i.v.Requests() {
		if r.On == on {
			n++
		}
	}
	return n
}

const (
	newTemplate = "POST /v3/templates"
	upload      = "PUT /uploads/{hash}"
	startBuild  = "POST /v2/templates/{templateID}/builds/{buildID}"
	buildStatus = "GET /templates/{templateID}/builds/{buildID}/status"
)

func TestAnImageBecomesATemplateOnceAndGoesWithItsLastSandbox(t *testing.T) {
	t.Parallel()
	i := imagerFor(t)
	image := extensions.Image{Pull: "python:3.12"}
	var told []string
	ctx := extensions.WithProgress(t.Context(), func(subject, detail string) { told = append(told, subject+": "+detail) })
	digest, err := i.PrepareImage(ctx, i.of(image, nil))
	must(t, err)
	if !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, "python:3.12") && strings.Contains(s, "FROM") }) {
		t.Errorf("its progress was %q", told)
	}
	if left := len(i.v.Sandboxes()); left != 0 {
		t.Errorf("%d sandboxes exist", left)
	}
	var all sync.WaitGroup
	handles := make([]extensions.Handle, 4)
	for n := range handles {
		all.Go(func() { handles[n] = i.run(i.of(image, nil)) })
	}
	all.Wait()
	again, err := i.PrepareImage(t.Context(), i.of(image, nil))
	if must(t, err); again != digest || i.asked(newTemplate) != 1 || len(i.v.Templates()) != 1 {
		t.Errorf("digest %s, then %s, with %d builds of %v", digest, again, i.asked(newTemplate), i.v.Templates())
	}
	for n, h := range handles {
		removed := strings.Join(i.end(h).Removed, " ")
		if last := n == len(handles)-1; strings.Contains(removed, "template") != last && last {
			t.Errorf("the end of sandbox %d removed %q", n, removed)
		}
	}
	if left := i.v.Templates(); len(left) > 0 {
		t.Errorf("without a sandbox there are the templates %v", left)
	}
	kept := extensions.Image{Pull: "python:3.12", Keep: true}
	i.end(i.run(i.of(kept, nil)))
	i.end(i.run(i.of(kept, nil)))
	if n := i.asked(newTemplate); n != 2 || len(i.v.Templates()) != 1 {
		t.Errorf("a kept one was built %d times, and there is %v", n-1, i.v.Templates())
	}
}

func TestSandboxesThatStartAtOnceWaitForOneBuild(t *testing.T) {
	t.Parallel()
	i := imagerFor(t)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { i.run(i.of(extensions.Image{Pull: "alpine:3.20"}, nil)) })
	}
	all.Wait()
	if n := i.asked(newTemplate); n != 1 {
		t.Errorf("%d builds for one image", n)
	}
}

func TestADockerfileIsBuiltAsItSays(t *testing.T) {
	t.Parallel()
	i := imagerFor(t)
	files := map[string]string{".dockerignore": "*.log\n", "a.log": "no", "src/one.txt": "1", "src/.two": "2", "x1": "x", "x2": "y", "odd name": "odd",
		"Dockerfile": `ARG BASE=alpine
FROM ${BASE}:3.20
ARG WHO=nobody
ENV GREETING="100% \$5 \"hi\" \\ $WHO" BIN=/opt/bin
ENV OLD the old form
ENV PATH=$BIN:$PATH
WORKDIR /opt
WORKDIR work
COPY src ./src/
COPY --chmod=600 x? /data/
COPY ["odd name", "/data/renamed"]
ADD src/one.txt $BIN/one
COPY . /all
RUN echo "$WHO in $PWD" >said; printf '%s' "$GREETING" >greeting
RUN ["sh", "-c", "echo 'exec form' >exec"]
LABEL a=b
EXPOSE 80
CMD ["sleep", "1"]
`}
	h := i.run(i.of(extensions.Image{Build: &extensions.BuildStage{Context: ".", Args: map[string]string{"WHO": "it's me"}}}, files))
	for script, want := range map[string]string{
		"cat /opt/work/said":                                       "it's me in /opt/work\n",
		"cat /opt/work/greeting":                                   `100% $5 "hi" \ it's me`,
		`printf %s "$GREETING|$OLD"`:                               `100% $5 "hi" \ it's me|the old form`,
		"cat /opt/work/exec":                                       "exec form\n",
		"cat /opt/work/src/one.txt /opt/work/src/.two":             "12",
		"cat /data/x1 /data/x2 /data/renamed; stat -c %a /data/x1": "xyodd600\n",
		"cat /opt/bin/one":                                         "1",
		"ls -A /all":                                               "Dockerfile\nodd name\nsrc\nx1\nx2\n",
		"ls -A / | grep sandboxer":                                 "",
		`case $PATH in /opt/bin:/*) echo leads;; esac; printf %s "$WHO"`: "leads\n",
	} {
		if got := i.says(h, script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	if got := i.says(h, "ls .."); got == "" {
		t.Error("nothing runs")
	}
}

func TestStagesAreTemplatesOnTemplates(t *testing.T) {
	t.Parallel()
	i := imagerFor(t)
	files := map[string]string{"base/Dockerfile": "FROM alpine:3.20\nRUN echo base >/base\n",
		"app/Dockerfile": "FROM mine/base\nRUN cp /base /app && echo $PARENT_TAG | grep -q . || true\n"}
	image := extensions.Image{Stages: []extensions.BuildStage{{Context: "base", Tag: "mine/base"}, {Context: "app", ParentTag: "mine/base"}}}
	h := i.run(i.of(image, files))
	if got := i.says(h, "cat /app"); got != "base\n" {
		t.Errorf("the second stage has %q", got)
	}
	if all := i.v.Templates(); len(all) != 2 {
		t.Errorf("templates %v", all)
	}
	changed := image
	changed.Stages = slices.Clone(image.Stages)
	changed.Stages[1].CacheKey = "again"
	_, err := i.PrepareImage(t.Context(), i.of(changed, files))
	must(t, err)
	if n := i.asked(newTemplate); n != 3 {
		t.Errorf("another cache_key of the last stage: %d builds in all", n)
	}
	i.end(h)
	i.v.AgeTemplates(25 * time.Hour)
	i.end(i.run(i.of(extensions.Image{Pull: "other:1"}, nil)))
	if left := i.v.Templates(); len(left) > 0 {
		t.Errorf("a day later there are %v", left)
	}
}

func TestABuildThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	i := imagerFor(t)
	i.v.SetImages("alpine:3.20")
	loud := "FROM alpine:3.20\nRUN for n in $(seq 1 500); do echo \"line $n\"; done; echo the last words; exit 3\n"
	for name, c := range map[string]struct {
		image extensions.Image
		files map[string]string
		kind  extensions.Kind
		want  string
	}{
		"a step": {extensions.Image{Build: &extensions.BuildStage{Context: "."}}, map[string]string{"Dockerfile": loud}, extensions.KindInvalid,
			"the last words"},
		"no image": {extensions.Image{Pull: "private/none:1"}, nil, extensions.KindUnsupported, "private/none:1"},
	} {
		_, _, err := i.Provision(t.Context(), i.of(c.image, c.files))
		if !extensions.IsKind(err, c.kind) || !strings.Contains(err.Error(), c.want) || extensions.RemedyOf(err) == "" ||
			len(err.Error()) > 4000 {
			t.Errorf("%s: %d characters: %v", name, len(err.Error()), err)
		}
	}
	if len(i.v.Templates()) > 0 || len(i.v.Sandboxes()) > 0 {
		t.Errorf("left: %v, %v", i.v.Templates(), i.v.Sandboxes())
	}
}

func TestALoginGoesToTheBuildAlone(t *testing.T) {
	t.Parallel()
	i := imagerFor(t)
	const canary = "c4nary-of-a-registry"
	spec := i.of(extensions.Image{Pull: "registry.example:5000/team/app:1"}, nil)
	logins := 0
	spec.Registries = extensions.Registries{"registry.example:5000": {Username: "me", Password: func(context.Context) (extensions.Secret, error) {
		logins++
		return extensions.NewSecret(canary), nil
	}}, "docker.io": {Username: "me", Password: func(context.Context) (extensions.Secret, error) {
		t.Error("the login of another registry was asked for")
		return extensions.Secret{}, nil
	}}}
	h := i.run(spec)
	if logins != 1 {
		t.Errorf("the password was asked for %d times", logins)
	}
	for _, r := range i.v.Requests() {
		if has := strings.Contains(string(r.Body)+r.Query+fmt.Sprint(r.Header), canary); has != (r.On == startBuild) {
			t.Errorf("%s: the password is there: %t", r.On, has)
		}
	}
	if strings.Contains(h.Encode()+fmt.Sprint(i.v.Sandboxes()), canary) {
		t.Error("the password is in the handle or at the sandbox")
	}
	spec = i.of(extensions.Image{Pull: "registry.example:5000/team/app:2"}, nil)
	spec.Registries = extensions.Registries{"registry.example:5000": {Username: "me", Password: func(context.Context) (extensions.Secret, error) {
		return extensions.Secret{}, extensions.Errorf(extensions.KindInvalid, "env:NOT_SET is not set")
	}}}
	if _, err := i.PrepareImage(t.Context(), spec); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a password that cannot be read: %v", err)
	}
}

// Whatever breaks in a preparation, the next one makes exactly one template.
func TestAPreparationThatBreaksIsDoneAgain(t *testing.T) {
	t.Parallel()
	files := map[string]string{"Dockerfile": "FROM alpine:3.20\nCOPY Dockerfile /made\n"}
	image := extensions.Image{Build: &extensions.BuildStage{Context: "."}}
	for _, on := range []string{"GET /templates/aliases/{alias}", newTemplate, "GET /templates/{templateID}/files/{hash}", upload, startBuild, buildStatus} {
		for _, when := range []vendortest.When{e2btest.Before, e2btest.After} {
			t.Run(fmt.Sprint(on, when), func(t *testing.T) {
				t.Parallel()
				i := imagerFor(t)
				i.v.Inject(e2btest.Fault{On: on, When: when})
				if _, err := i.PrepareImage(t.Context(), i.of(image, files)); err != nil && !slices.Contains([]extensions.Kind{
					extensions.KindUnavailable, extensions.KindUnreachable, extensions.KindIndeterminate}, extensions.KindOf(err)) {
					t.Errorf("broken: %v", err)
				}
				if got := i.says(i.run(i.of(image, files)), "cat /made"); got != files["Dockerfile"] {
					t.Errorf("it has %q", got)
				}
				if all := i.v.Templates(); len(all) != 1 {
					t.Errorf("templates %v", all)
				}
			})
		}
	}
}

// Whoever has the signed address may upload, so it is told to nobody, however the upload fails.
func TestTheAddressOfAnUploadIsInNoMessage(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]e2btest.Fault{"broken": {}, "refused": {Status: http.StatusForbidden, Body: "SignatureDoesNotMatch"},
		"led on": {Status: http.StatusFound, Header: http.Header{"Location": {"/elsewhere"}}}} {
		i := imagerFor(t)
		fault.On = upload
		i.v.Inject(fault)
		var told strings.Builder
		ctx := extensions.WithProgress(t.Context(), func(subject, detail string) { told.WriteString(subject + detail) })
		_, err := i.PrepareImage(ctx, i.of(extensions.Image{Build: &extensions.BuildStage{Context: "."}},
			map[string]string{"Dockerfile": "FROM alpine:3.20\nCOPY Dockerfile /made\n"}))
		if !extensions.IsKind(err, extensions.KindUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		for _, r := range i.v.Requests() {
			if r.On != upload {
				continue
			}
			if query, _ := url.ParseQuery(r.Query); query.Get("Signature") == "" || r.Header.Get("X-API-Key") != "" {
				t.Errorf("%s: its query is %q, and its header %v", name, r.Query, r.Header)
			}
			if said := fmt.Sprintf("%v %+v %s", err, err, told.String()); strings.Contains(said, r.Query) || strings.Contains(said, r.Path) {
				t.Errorf("%s: %s", name, said)
			}
		}
		if i.asked(upload) != 1 {
			t.Errorf("%s: %d uploads", name, i.asked(upload))
		}
	}
}

func TestADockerfileThatTheVendorCannotBuildIsRefusedInThePlan(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	x := e2b.New().(extensions.SpecChecker)
	for name, text := range map[string]string{
		"two stages":  "FROM alpine AS one\nFROM alpine\n",
		"copy from":   "FROM alpine\nCOPY --from=busybox /bin/sh /sh\n",
		"scratch":     "FROM scratch\nCOPY Dockerfile /\n",
		"shell":       "FROM alpine\nSHELL [\"/bin/ash\"]\n",
		"onbuild":     "FROM alpine\nONBUILD RUN true\n",
		"an archive":  "FROM alpine\nADD a.tar.gz /\n",
		"an address":  "FROM alpine\nADD https://example.org/a /\n",
		"no variable": "FROM alpine\nCOPY $NOWHERE /\n",
		"a user id":   "FROM alpine\nUSER 1000:1000\n",
		"a platform":  "FROM --platform=linux/arm64 alpine\n",
	} {
		files := map[string]string{"Dockerfile": text, "a.tar.gz": ""}
		spec := exttest.Spec(t, cfg, exttest.WithWorkspace(extensions.AccessRW, files), exttest.With(func(s *extensions.Spec) {
			s.ID = "" // as in a plan
			s.Image = &extensions.Image{Build: &extensions.BuildStage{Context: "."}}
		}))
		if _, err := x.CheckSpec(t.Context(), cfg, spec); !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	spec := exttest.Spec(t, cfg, exttest.WithWorkspace(extensions.AccessRW, map[string]string{"Dockerfile": "FROM alpine\nVOLUME /data\n"}),
		exttest.With(func(s *extensions.Spec) { s.Image = &extensions.Image{Build: &extensions.BuildStage{Context: "."}} }))
	if notes, err := x.CheckSpec(t.Context(), cfg, spec); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "VOLUME") {
		t.Errorf("what has no effect: %q, %v", notes, err)
	}
	if n := len(vendorOf(cfg).Requests()); n != 0 {
		t.Errorf("%d requests for a plan", n)
	}
}
