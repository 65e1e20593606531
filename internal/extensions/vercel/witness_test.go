package vercel_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

var update = flag.Bool("update", false, "write the golden files")

// The vendor's own SDK lives one sandbox's life at the fake, and what it asks is kept.
func TestTheVendorsOwnSDKSpeaksToTheFake(t *testing.T) {
	t.Parallel()
	v := verceltest.Start(t)
	out := vendortest.Scenario(t, "vercel", "VERCEL_API="+v.APIURL, "VERCEL_TOKEN="+v.Token, "VERCEL_TEAM_ID="+v.Team,
		"VERCEL_PROJECT_ID="+v.Project)
	vendortest.Golden(t, *update, "sdk.answers", out)
	calls, err := v.Calls()
	must(t, err)
	vendortest.Golden(t, *update, "sdk.calls", vendortest.Script(vendortest.Named(calls, chance)))
	if left, kept := v.Sandboxes(), v.Snapshots(); len(left)+len(kept) > 0 {
		t.Errorf("left: %v, %v", left, kept)
	}
}

// What this adapter asks of the vendor for one sandbox's life, beside what the vendor's own SDK asks for the same.
func TestWhatTheVendorsOwnSDKAsksOtherwiseIsReviewed(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	b := opened(t, cfg)
	h := ready(t, cfg, b, exttest.With(func(s *extensions.Spec) {
		s.Region, s.Network = "fra1", extensions.Network{Default: "deny", Egress: []extensions.EgressRule{{CIDR: "192.0.2.0/24"}}}
	}))
	must(t, b.(extensions.Extender).Extend(t.Context(), h, time.Now().Add(3*time.Hour)))
	_, err := b.Status(t.Context(), nil)
	must(t, err)
	r, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: "pwd; echo $A; exit 7", Dir: "/tmp", Env: map[string]string{"A": "b c"}})
	if must(t, err); r.ExitCode != 7 || string(r.Stdout) != "/tmp\nb c\n" {
		t.Errorf("%+v", r)
	}
	files := b.(extensions.FileTransfer)
	must(t, files.Upload(t.Context(), h, "/tmp/work", archive(t)))
	must(t, files.Download(t.Context(), h, "/tmp/work/a.txt", &bytes.Buffer{}))
	_, err = b.(extensions.URLGiver).URL(t.Context(), h, 3000)
	must(t, err)
	p, spec := b.(extensions.Snapshotter), newSnapshot(t)
	kept, err := p.Snapshot(t.Context(), h, spec)
	must(t, err)
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	again := ready(t, cfg, b, exttest.With(func(s *extensions.Spec) {
		s.FromSnapshot = &extensions.SnapshotRef{ID: spec.ID, Handle: kept.Handle}
	}))
	_, err = b.Teardown(t.Context(), again)
	must(t, err)
	must(t, p.DeleteSnapshot(t.Context(), kept.Handle))
	theirs, err := os.ReadFile("testdata/sdk.calls")
	must(t, err)
	ours, err := vendorOf(cfg).Calls()
	must(t, err)
	vendortest.Golden(t, *update, "sdk.difference",
		vendortest.Difference("sdk", vendortest.Parse(string(theirs)), "sandboxer", vendortest.Named(ours, chance)))
}

func archive(t *testing.T) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	must(t, w.WriteHeader(&tar.Header{Name: "a.txt", Mode: 0o644, Size: 9, ModTime: time.Unix(1e9, 0)}))
	_, err := w.Write([]byte("some text"))
	must(t, errors.Join(err, w.Close()))
	return &out
}

// chance is what differs from run to run.
var chance = []vendortest.Chance{
	{Is: regexp.MustCompile(`\bsbx-[a-z2-7]{20}\b`), Name: "<our id>"},
	{Is: regexp.MustCompile(`\bteam_[a-z0-9]{20}\b`), Name: "<team>"},
	{Is: regexp.MustCompile(`\bprj_[a-z0-9]{20}\b`), Name: "<project>"},
	{Is: regexp.MustCompile(`\bsnap_[a-z0-9]{24}\b`), Name: "<snapshot>"},
	{Is: regexp.MustCompile(`\b[0-9a-f]{32}\b`), Name: "<nonce>"},
	{Is: regexp.MustCompile(`("sandboxer.rest-\d": )"[^"]+"`), Name: `$1"<labels>"`},
	{Is: regexp.MustCompile(`"(duration|timeout)": \d+`), Name: `"$1": "<ms>"`},
	{Is: regexp.MustCompile(`"<nonce>",\s+"\d+",\s+"\d+",\s+"4194304"`), Name: `"<nonce>", "<seen of out>", "<seen of err>", "4194304"`},
}
