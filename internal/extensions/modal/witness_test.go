package modal_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modal-labs/modal-client/go"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal/modaltest"
)

var update = flag.Bool("update", false, "write the golden file")

// One sandbox's life and what can be done in it, played by the vendor's own SDK as its pages show it, and by this adapter,
// which uses that SDK for some of it: what each asks that the other does not is reviewed.
func TestWhatTheVendorsOwnSDKAsksOtherwiseIsReviewed(t *testing.T) {
	theirs := at(t)
	v := vendorOf(theirs)
	v.SecureRouters()
	for name, value := range map[string]string{"HOME": t.TempDir(), "MODAL_SERVER_URL": v.URL, "MODAL_TOKEN_ID": v.TokenID,
		"MODAL_TOKEN_SECRET": v.TokenSecret, "MODAL_ENVIRONMENT": "main"} {
		t.Setenv(name, value)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	playSDK(ctx, t, v)
	ours := at(t)
	play(ctx, t, ours)
	vendortest.Golden(t, *update, "sdk.difference", vendortest.Difference("sdk", asked(t, v), "sandboxer", asked(t, vendorOf(ours))))
}

// playSDK is the scenario in the words of the SDK's examples.
func playSDK(ctx context.Context, t *testing.T, v *modaltest.Vendor) {
	t.Helper()
	mc, err := sdk.NewClient()
	must(t, err)
	defer mc.Close()
	app, err := mc.Apps.FromName(ctx, "sandboxer", &sdk.AppFromNameParams{CreateIfMissing: true})
	must(t, err)
	image := mc.Images.FromRegistry("docker.io/library/debian:12-slim", nil)
	params := func(name string) *sdk.SandboxCreateParams {
		return &sdk.SandboxCreateParams{Name: name, Command: []string{"sleep", "172800"}, Timeout: 20 * time.Minute, CPU: 0.75, CPULimit: 0.75,
			MemoryMiB: 2048, MemoryLimitMiB: 2048, OutboundDomainAllowlist: &sdk.Allowlist{Entries: []string{"example.org"}},
			OutboundCIDRAllowlist: &sdk.Allowlist{Entries: []string{"192.0.2.0/24"}}, Tags: map[string]string{"purpose": "witness"}}
	}
	sb, err := mc.Sandboxes.Create(ctx, app, image, params("first"))
	must(t, err)
	found, err := mc.Sandboxes.FromName(ctx, "sandboxer", "first", nil)
	if must(t, err); found.SandboxID != sb.SandboxID {
		t.Errorf("found %s, made %s", found.SandboxID, sb.SandboxID)
	}
	_, err = sb.GetTags(ctx, nil)
	must(t, err)
	if code, err := sb.Poll(ctx, nil); err != nil || code != nil {
		t.Errorf("poll: %v, %v", code, err)
	}
	p, err := sb.Exec(ctx, []string{"/bin/sh", "-c", "echo $A; exit 7"}, &sdk.SandboxExecParams{Workdir: "/tmp", Env: map[string]string{"A": "b c"}})
	must(t, err)
	out, err := io.ReadAll(p.Stdout)
	must(t, err)
	_, err = io.ReadAll(p.Stderr)
	must(t, err)
	if exit, err := p.Wait(ctx, nil); err != nil || exit != 7 || string(out) != "\n" { // the fake takes no variables at an exec
		t.Errorf("exec: %d, %q, %v", exit, out, err)
	}
	p, err = sb.Exec(ctx, []string{"cat"}, nil)
	must(t, err)
	_, err = io.WriteString(p.Stdin, "from stdin")
	must(t, errors.Join(err, p.Stdin.Close()))
	if out, err = io.ReadAll(p.Stdout); err != nil || string(out) != "from stdin" {
		t.Errorf("stdin: %q, %v", out, err)
	}
	must(t, sb.Filesystem.WriteText(ctx, "some text", "/tmp/work/a.txt", nil))
	if text, err := sb.Filesystem.ReadText(ctx, "/tmp/work/a.txt", nil); err != nil || text != "some text" {
		t.Errorf("files: %q, %v", text, err)
	}
	_, err = sb.CreateConnectToken(ctx, &sdk.SandboxCreateConnectTokenParams{Port: 3000})
	must(t, err)
	kept, err := sb.SnapshotFilesystem(ctx, nil)
	must(t, err)
	must(t, kept.Publish(ctx, "kept:first", nil))
	again, err := mc.Sandboxes.Create(ctx, app, kept, params("second"))
	must(t, err)
	gpu := params("third")
	gpu.GPU = "T4"
	third, err := mc.Sandboxes.Create(ctx, app, image, gpu)
	must(t, err)
	all, err := mc.Sandboxes.ExperimentalList(ctx, &sdk.SandboxExperimentalListParams{AppID: app.AppID})
	must(t, err)
	n := 0
	for _, err := range all {
		must(t, err)
		n++
	}
	if n != 3 {
		t.Errorf("%d are listed", n)
	}
	for _, one := range []*sdk.Sandbox{sb, again, third} {
		_, err := one.Terminate(ctx, nil)
		must(t, err)
	}
	must(t, mc.Images.Delete(ctx, kept.ImageID, nil))
	built := mc.Images.FromRegistry("registry.example/alpine:3.20", nil).DockerfileCommands([]string{"ENV A=b", "RUN echo made >/made"}, nil)
	_, err = built.Build(ctx, app, nil)
	must(t, err)
	for _, s := range []*sdk.Sandbox{sb, again, third, found} {
		s.Detach()
	}
}

// play is the same by this adapter.
func play(ctx context.Context, t *testing.T, cfg extensions.Config) {
	t.Helper()
	b := open(t, cfg).(interface {
		extensions.Backend
		extensions.Execer
		extensions.FileTransfer
		extensions.Snapshotter
		extensions.URLGiver
		extensions.ImagePreparer
	})
	cpu, memory := extensions.Milli(1500), int64(2048)
	sized := exttest.With(func(s *extensions.Spec) {
		s.Resources = extensions.Resources{CPU: &cpu, MemoryMB: &memory}
		s.Network = extensions.Network{Default: "deny", Egress: []extensions.EgressRule{{Domain: "example.org", Port: 443}, {CIDR: "192.0.2.0/24"}}}
	})
	spec := exttest.Spec(t, cfg, sized)
	made := func(spec extensions.Spec) extensions.Handle {
		h, _, err := b.Provision(ctx, spec)
		must(t, err)
		return h
	}
	h := made(spec)
	_, err := b.WaitReady(ctx, spec, h)
	must(t, err)
	_, err = b.Find(ctx, spec.ID)
	must(t, err)
	r, err := b.Exec(ctx, h, extensions.ExecRequest{Shell: "echo $A; exit 7", Dir: "/tmp", Env: map[string]string{"A": "b c"}})
	if must(t, err); r.ExitCode != 7 || string(r.Stdout) != "b c\n" {
		t.Errorf("%+v", r)
	}
	r, err = b.Exec(ctx, h, extensions.ExecRequest{Command: []string{"cat"}, Stdin: strings.NewReader("from stdin")})
	if must(t, err); string(r.Stdout) != "from stdin" {
		t.Errorf("%+v", r)
	}
	must(t, b.Upload(ctx, h, "/tmp/work", archive(t, "a.txt", "some text")))
	must(t, b.Download(ctx, h, "/tmp/work", &bytes.Buffer{}))
	_, err = b.URL(ctx, h, 3000)
	must(t, err)
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	kept, err := b.Snapshot(ctx, h, extensions.SnapshotSpec{ID: id, Account: cfg.Account, CreatedAt: time.Now()})
	must(t, err)
	again := made(exttest.Spec(t, cfg, sized, exttest.With(func(s *extensions.Spec) {
		s.FromSnapshot = &extensions.SnapshotRef{ID: id, Handle: kept.Handle}
	})))
	third := made(exttest.Spec(t, cfg, sized, exttest.With(withGPU)))
	all, err := b.Status(ctx, nil)
	if must(t, err); len(all) != 3 {
		t.Errorf("%d are listed", len(all))
	}
	for _, one := range []extensions.Handle{h, again, third} {
		_, err := b.Teardown(ctx, one)
		must(t, err)
	}
	must(t, b.DeleteSnapshot(ctx, kept.Handle))
	_, err = b.PrepareImage(ctx, exttest.Spec(t, cfg, exttest.WithWorkspace(extensions.AccessRW, map[string]string{
		"Dockerfile": "FROM registry.example/alpine:3.20\nENV A=b\nRUN echo made >/made\n"}), exttest.With(func(s *extensions.Spec) {
		s.Image = &extensions.Image{Build: &extensions.BuildStage{Context: "."}}
	})))
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

// chance is what differs from run to run, with a name for it.
var chance = []vendortest.Chance{
	{Is: regexp.MustCompile(`\bsbx-[a-z2-7]{20}\b`), Name: "<our id>"},
	{Is: regexp.MustCompile(`\bsnp-[a-z2-7]{20}\b`), Name: "<our snapshot>"},
	{Is: regexp.MustCompile(`\bsb-[A-Za-z0-9]{22,}\b`), Name: "<sandbox>"},
	{Is: regexp.MustCompile(`\bta-[A-Za-z0-9]{26}\b`), Name: "<task>"},
	{Is: regexp.MustCompile(`\bap-[0-9a-f]{22}\b`), Name: "<app>"},
	{Is: regexp.MustCompile(`\bim-[0-9a-f]{22}\b`), Name: "<image>"},
	{Is: regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b`), Name: "<uuid>"},
	{Is: regexp.MustCompile(`"before_timestamp": [0-9.e+]+`), Name: `"before_timestamp": <time>`},
	{Is: regexp.MustCompile(`"timeout_secs": \d+`), Name: `"timeout_secs": <seconds>`},
	{Is: regexp.MustCompile(`"tag_value": "r[A-Za-z0-9_-]+r"`), Name: `"tag_value": "<more labels>"`},
	{Is: regexp.MustCompile(`"data": "[^"]+"`), Name: `"data": "<input>"`},
	{Is: regexp.MustCompile(`\b[0-9a-f]{32}\b`), Name: "<nonce>"},
	{Is: regexp.MustCompile(`"(?:[^"\\]|\\.){120,}"`), Name: `"<a script>"`},
}

// asked are the messages that a vendor got, call by call, and the names of its header fields.
func asked(t *testing.T, v *modaltest.Vendor) []vendortest.Call {
	t.Helper()
	var all []vendortest.Call
	for _, r := range v.Requests() {
		raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(r.Message)
		must(t, err)
		var message map[string]any
		must(t, json.Unmarshal(raw, &message))
		delete(message, "offset") // of input, which comes in pieces as they are read
		if tags, ok := message["tags"].([]any); ok {
			slices.SortFunc(tags, func(a, b any) int {
				return strings.Compare(a.(map[string]any)["tag_name"].(string), b.(map[string]any)["tag_name"].(string))
			})
		}
		raw, err = json.Marshal(message)
		must(t, err)
		text, err := vendortest.Canonical(raw)
		must(t, err)
		all = append(all, vendortest.Call{On: r.Method, Body: text})
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			if strings.HasPrefix(name, "x-") || name == "authorization" {
				all = append(all, vendortest.Call{On: "(header fields)", Body: name})
			}
		}
	}
	return vendortest.Named(all, chance)
}
