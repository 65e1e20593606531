package daytona_test

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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

var update = flag.Bool("update", false, "write the golden files")

// The vendor's own SDK lives one sandbox's life at the fake, and what it asks is kept.
func TestTheVendorsOwnSDKSpeaksToTheFake(t *testing.T) {
	t.Parallel()
	v := daytonatest.Start(t)
	out := vendortest.Scenario(t, "daytona", "DAYTONA_API_URL="+v.APIURL, "DAYTONA_API_KEY="+v.Key, "DAYTONA_TARGET=eu",
		"DAYTONA_USE_DEPRECATED_POLLING=true")
	vendortest.Golden(t, *update, "sdk.answers", out)
	calls, err := v.Calls()
	must(t, err)
	vendortest.Golden(t, *update, "sdk.calls", vendortest.Script(vendortest.Named(calls, chance)))
	if left := v.Sandboxes(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// What this adapter asks of the vendor for one sandbox's life, beside what the vendor's own SDK asks for the same.
func TestWhatTheVendorsOwnSDKAsksOtherwiseIsReviewed(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) {
		s.Region, s.Network = "eu", extensions.Network{Default: "deny", Egress: []extensions.EgressRule{{CIDR: "192.0.2.0/24"}}}
	}))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	_, err = b.WaitReady(t.Context(), spec, h)
	must(t, err)
	must(t, b.(extensions.Extender).Extend(t.Context(), h, time.Now().Add(30*time.Minute)))
	_, err = b.Status(t.Context(), nil)
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
	taken := kept(t, cfg, b, h)
	_, err = b.(extensions.Pauser).Resume(t.Context(), h, spec.Deadline)
	must(t, err)
	_, restored := made(t, cfg, b, from(taken))
	vms, machines := openFor(t, v, map[string]any{"class": "linux-vm", "snapshot": daytonatest.VMSnapshot})
	_, vm := made(t, vms, machines)
	paused(t, machines, vm)
	_, err = machines.(extensions.Pauser).Resume(t.Context(), vm, spec.Deadline)
	must(t, err)
	for _, one := range []extensions.Handle{vm, restored, h} {
		_, err = b.Teardown(t.Context(), one)
		must(t, err)
	}
	must(t, b.(extensions.Snapshotter).DeleteSnapshot(t.Context(), taken.Handle))
	theirs, err := os.ReadFile("testdata/sdk.calls")
	must(t, err)
	ours, err := v.Calls()
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
	{Is: regexp.MustCompile(`\b[0-9a-f]{8}-0000-4000-8000-[0-9a-f]{12}\b`), Name: "<id>"},
	{Is: regexp.MustCompile(`\b[0-9a-f]{64}\b`), Name: "<hash>"},
	{Is: regexp.MustCompile(`\b[0-9a-f]{32}\b`), Name: "<nonce>"},
	{Is: regexp.MustCompile(`\bsnp-[a-z2-7]{20}\b`), Name: "<our snapshot id>"},
	{Is: regexp.MustCompile(`\b20\d\d-\d\d-\d\dT[0-9:.]+Z`), Name: "<time>"},
	{Is: regexp.MustCompile(`"ttlMinutes": \d+`), Name: `"ttlMinutes": "<minutes>"`},
	{Is: regexp.MustCompile(`<nonce> \d+ \d+ 4194304`), Name: "<nonce> <seen of out> <seen of err> 4194304"},
	{Is: regexp.MustCompile(`(?s)(filename=[^\s:]+):.*`), Name: "$1"},
}

// A key of the wrong kind is refused before it is sent anywhere.
func TestHalfACredentialIsNone(t *testing.T) {
	t.Parallel()
	cfg := extensions.Config{Account: "acme/web", Credentials: map[string]extensions.Secret{"jwt_token": extensions.NewSecret("x")}}
	if _, err := daytona.New().Open(t.Context(), cfg); !extensions.IsKind(err, extensions.KindUnauthorized) || extensions.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
}
