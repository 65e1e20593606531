package daytona_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	at := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(at, []byte(got), 0o644))
	}
	want, err := os.ReadFile(at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-update writes it; review what changed):\n%s", at, diff)
	}
}

// sdk installs the vendor's own SDK where this module keeps what it builds, once for each lock file, and returns its folder.
func sdk(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s: install Node.js 20.18 or newer to let the vendor's own SDK speak to the fake", program)
		}
	}
	at := filepath.Join("..", "..", "..", ".cache", "daytona-sdk")
	must(t, os.MkdirAll(at, 0o755))
	lock := flock.New(filepath.Join(at, "lock"))
	must(t, lock.Lock())
	defer func() { _ = lock.Close() }()
	same := true
	for _, name := range []string{"package.json", "package-lock.json", "scenario.mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata/sdk", name))
		must(t, err)
		old, _ := os.ReadFile(filepath.Join(at, name))
		same = same && (name == "scenario.mjs" || string(old) == string(text))
		must(t, os.WriteFile(filepath.Join(at, name), text, 0o644))
	}
	if _, err := os.Stat(filepath.Join(at, "installed")); err == nil && same {
		return at
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir, install.WaitDelay = at, time.Second
	if out, err := install.CombinedOutput(); err != nil {
		_ = os.Remove(filepath.Join(at, "package-lock.json"))
		t.Skipf("the vendor's own SDK cannot be installed here: npm ci: %v\n%s", err, out)
	}
	must(t, os.WriteFile(filepath.Join(at, "installed"), nil, 0o644))
	return at
}

// The vendor's own SDK lives one sandbox's life at the fake, and what it asks is kept.
func TestTheVendorsOwnSDKSpeaksToTheFake(t *testing.T) {
	t.Parallel()
	at := sdk(t)
	v := daytonatest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "scenario.mjs")
	node.Dir, node.WaitDelay = at, time.Second
	node.Env = append(os.Environ(), "DAYTONA_API_URL="+v.APIURL, "DAYTONA_API_KEY="+v.Key, "DAYTONA_TARGET=eu", "DAYTONA_USE_DEPRECATED_POLLING=true")
	out, err := node.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	golden(t, "sdk.answers", string(out))
	golden(t, "sdk.calls", calls(t, v))
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
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	theirs, err := os.ReadFile("testdata/sdk.calls")
	must(t, err)
	golden(t, "sdk.difference", difference(string(theirs), calls(t, v)))
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

// chance is what differs from run to run, with a name for it.
var chance = []struct {
	is   *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`\bsbx-[a-z2-7]{20}\b`), "<our id>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-0000-4000-8000-[0-9a-f]{12}\b`), "<id>"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "<hash>"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "<nonce>"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\dT[0-9:.]+Z`), "<time>"},
	{regexp.MustCompile(`"ttlMinutes":\d+`), `"ttlMinutes":"<minutes>"`},
	{regexp.MustCompile(`<nonce> \d+ \d+ 4194304`), "<nonce> <seen of out> <seen of err> 4194304"},
}

// calls writes the different requests of a vendor down, in the order in which each came first: method and path with a query and a
// body in one spelling.
func calls(t *testing.T, v *daytonatest.Vendor) string {
	t.Helper()
	var all []string
	for _, r := range v.Requests() {
		query, err := url.ParseQuery(r.Query)
		must(t, err)
		text := r.On
		for _, name := range slices.Sorted(maps.Keys(query)) {
			text += " ?" + name + "=" + strings.Join(query[name], ",")
		}
		var body any
		switch {
		case strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/"):
			text += "\n  a form with a file"
		case json.Unmarshal(r.Body, &body) == nil:
			spelled, err := json.Marshal(body)
			must(t, err)
			text += "\n  " + string(spelled)
		}
		for _, x := range chance {
			text = x.is.ReplaceAllString(text, x.name)
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "\n\n") + "\n"
}

// difference tells, operation by operation, which calls only one side makes.
func difference(theirs, ours string) string {
	by := map[string][2][]string{}
	for side, text := range []string{theirs, ours} {
		for _, call := range strings.Split(strings.TrimSpace(text), "\n\n") {
			words := strings.SplitN(call, " ", 3)
			on := words[0] + " " + strings.SplitN(words[1], "\n", 2)[0]
			pair := by[on]
			pair[side] = append(pair[side], strings.TrimPrefix(call, on))
			by[on] = pair
		}
	}
	var out strings.Builder
	for _, on := range slices.Sorted(maps.Keys(by)) {
		out.WriteString(on + "\n")
		same := true
		for side, name := range []string{"- sdk:", "+ sandboxer:"} {
			for _, call := range by[on][side] {
				if !slices.Contains(by[on][1-side], call) {
					same = false
					out.WriteString(name + call + "\n")
				}
			}
		}
		if same {
			out.WriteString("  the same\n")
		}
		out.WriteString("\n")
	}
	return out.String()
}

// A key of the wrong kind is refused before it is sent anywhere.
func TestHalfACredentialIsNone(t *testing.T) {
	t.Parallel()
	cfg := extensions.Config{Account: "acme/web", Credentials: map[string]extensions.Secret{"jwt_token": extensions.NewSecret("x")}}
	if _, err := daytona.New().Open(t.Context(), cfg); !extensions.IsKind(err, extensions.KindUnauthorized) || extensions.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
}
