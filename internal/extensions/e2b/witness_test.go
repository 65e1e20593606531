package e2b_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

var update = flag.Bool("update", false, "write the golden file")

// What this adapter asks of the vendor for one sandbox's life, beside what the vendor's own SDK asks for the same.
func TestWhatTheVendorsOwnSDKAsksOtherwiseIsReviewed(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	live(t, cfg)
	ours, err := vendorOf(cfg).Calls()
	must(t, err)
	theirs, err := os.ReadFile("e2btest/testdata/sdk.calls")
	must(t, err)
	got := vendortest.Difference("sdk", vendortest.Named(vendortest.Parse(string(theirs)), chance),
		"sandboxer", vendortest.Named(ours, chance))
	vendortest.Golden(t, *update, "sdk.difference", got)
}

// live plays the scenario of e2btest/testdata/sdk.
func live(t *testing.T, cfg extensions.Config) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open, err := e2b.New().Open(ctx, cfg)
	must(t, err)
	defer func() { must(t, open.Close()) }()
	b := open.(interface {
		extensions.Backend
		extensions.Execer
		extensions.Extender
		extensions.FileTransfer
		extensions.Pauser
		extensions.Snapshotter
	})
	spec := exttest.Spec(t, cfg)
	h, _, err := b.Provision(ctx, spec)
	must(t, err)
	must(t, b.Extend(ctx, h, time.Now().Add(10*time.Minute)))
	_, err = b.WaitReady(ctx, spec, h)
	must(t, err)
	found, err := b.Find(ctx, spec.ID)
	if must(t, err); found.Ref != h.Ref {
		t.Errorf("found %s, made %s", found.Ref, h.Ref)
	}
	r, err := b.Exec(ctx, h, extensions.ExecRequest{Shell: "pwd; echo $A; exit 7", Dir: "/tmp", Env: map[string]string{"A": "b c"}})
	if must(t, err); r.ExitCode != 7 || string(r.Stdout) != "/tmp\nb c\n" {
		t.Errorf("%+v", r)
	}
	r, err = b.Exec(ctx, h, extensions.ExecRequest{Command: []string{"cat"}, Stdin: strings.NewReader("from stdin")})
	if must(t, err); string(r.Stdout) != "from stdin" {
		t.Errorf("%+v", r)
	}
	must(t, b.Upload(ctx, h, "work", archive(t, "a.txt", "some text")))
	var out bytes.Buffer
	must(t, b.Download(ctx, h, "work", &out))
	_, err = b.Pause(ctx, h)
	must(t, err)
	_, err = b.Resume(ctx, h, time.Now().Add(10*time.Minute))
	must(t, err)
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	snapshot, err := b.Snapshot(ctx, h, extensions.SnapshotSpec{ID: id, Account: cfg.Account, CreatedAt: time.Now()})
	must(t, err)
	again := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) {
		s.FromSnapshot = &extensions.SnapshotRef{ID: id, Handle: snapshot.Handle}
	}))
	restored, _, err := b.Provision(ctx, again)
	must(t, err)
	_, err = b.WaitReady(ctx, again, restored)
	must(t, err)
	for _, one := range []extensions.Handle{restored, h, h} {
		_, err = b.Teardown(ctx, one)
		must(t, err)
	}
	must(t, b.DeleteSnapshot(ctx, snapshot.Handle))
	files := map[string]string{"a.txt": "some text", "Dockerfile": "FROM registry.example/alpine:3.20\nENV A=\"b c\"\nWORKDIR /opt\n" +
		"COPY a.txt it/a.txt\nRUN cat it/a.txt >made\n"}
	spec = exttest.Spec(t, cfg, exttest.WithWorkspace(extensions.AccessRW, files), exttest.With(func(s *extensions.Spec) {
		s.Image = &extensions.Image{Build: &extensions.BuildStage{Context: "."}}
		s.Registries = extensions.Registries{"registry.example": {Username: "me",
			Password: func(context.Context) (extensions.Secret, error) { return extensions.NewSecret("secret"), nil }}}
	}))
	built, _, err := b.Provision(ctx, spec)
	must(t, err)
	_, err = b.WaitReady(ctx, spec, built)
	must(t, err)
	_, err = b.Teardown(ctx, built)
	must(t, err)
}

func archive(t *testing.T, name, text string) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), ModTime: time.Unix(1e9, 0)}))
	_, err := w.Write([]byte(text))
	must(t, errors.Join(err, w.Close()))
	return &out
}

// chance is what differs from run to run.
var chance = []vendortest.Chance{
	{Is: regexp.MustCompile(`\bsbx-[a-z2-7]{20}\b`), Name: "<id>"},
	{Is: regexp.MustCompile(`\bsnp-[a-z2-7]{20}\b`), Name: "<snapshot id>"},
	{Is: regexp.MustCompile(`\b[0-9a-f]{64}\b`), Name: "<hash>"},
	{Is: regexp.MustCompile(`\bsandboxer-[0-9a-f]{40}\b`), Name: "<template's name>"},
	{Is: regexp.MustCompile(`\b20\d\d-\d\d-\d\dT[0-9:.]+Z`), Name: "<time>"},
	{Is: regexp.MustCompile(`"timeout": \d+`), Name: `"timeout": "<seconds>"`},
	{Is: regexp.MustCompile(`"stdin": "[^"]*"`), Name: `"stdin": "<input>"`},
	{Is: regexp.MustCompile(`"(?:[^"\\]|\\.){100,}"`), Name: `"<a script>"`},
}
