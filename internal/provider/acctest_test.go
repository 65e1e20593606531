package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/all"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func testExtensions() []extensions.Extension { return all.Extensions() }

// bed is one user's machine: a state folder with its ledger and stub vendor,
// and a catalog. Its end destroys whatever a test left alive.
type bed struct {
	t       testing.TB
	root    string // short: sockets below it have a length limit
	state   string
	catalog string
}

// requireTerraform skips a test that needs Terraform where there is none, or
// fails it where skips are not allowed.
func requireTerraform(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: runs no Terraform")
	}
	skip := func(why string) {
		if os.Getenv("SANDBOXER_NO_SKIP") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	if os.Getenv("TF_ACC") == "" {
		skip("TF_ACC is not set: run `make testacc` for the tests that go through Terraform")
	}
	if p := os.Getenv("TF_ACC_TERRAFORM_PATH"); p != "" {
		return p
	}
	p, err := exec.LookPath("terraform")
	if err != nil {
		skip("terraform is not on PATH")
	}
	return p
}

// requireLocal skips where sandboxes cannot run on this machine.
func requireLocal(t testing.TB) {
	t.Helper()
	err := probedLocal()
	if extensions.IsKind(err, extensions.KindUnsupported) {
		if os.Getenv("SANDBOXER_NO_SKIP") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// probedLocal asks this machine once for all tests.
var probedLocal = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "sbx")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	e, err := engine.New(engine.Options{Extensions: testExtensions(), StateDir: dir})
	if err != nil {
		return err
	}
	_, err = e.GetHost(context.Background(), engine.Host{Name: "probe", Local: true})
	return errors.Join(err, e.Close())
})

func newBed(t testing.TB) *bed {
	t.Helper()
	root, err := os.MkdirTemp("", "sbx")
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, root: root, state: filepath.Join(root, "s"), catalog: filepath.Join(root, "catalog")}
	exttest.Guard(t, b.state)
	t.Cleanup(func() {
		for _, id := range b.destroyAll() {
			b.notRunning(id)
		}
		if err := os.RemoveAll(root); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	b.profile("profile.stub", `
extends: profile.base
extension: ext.saas-stub
isolation: { level: container }
resources: { cpu: 1, memory_mb: 512 }
inputs: { repo: { type: string }, ref: { type: string }, count: { type: number }, flag: { type: bool } }
`)
	return b
}

// elsewhere is another machine that sees the same vendor but has no ledger.
func (b *bed) elsewhere() *bed {
	b.t.Helper()
	other := newBed(b.t)
	other.catalog = b.catalog
	other.write("catalog/extensions/ext.saas-stub.yaml",
		"id: ext.saas-stub\nhandler: saas-stub\ntitle: Stub\nconfig: { dir: "+filepath.Join(b.state, saasstub.Handler)+" }\n")
	other.catalog = filepath.Join(other.root, "catalog")
	return other
}

// profile writes version 1.0.0 of a profile of the test's own.
func (b *bed) profile(id, body string) {
	b.t.Helper()
	b.write("catalog/profiles/"+id+".yaml", "id: "+id+"\nversion: \"1.0.0\"\n"+strings.TrimLeft(body, "\n"))
}

func (b *bed) write(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// config puts the bed's provider block before body.
func (b *bed) config(body string) string {
	return fmt.Sprintf("provider \"sandboxer\" {\n  state_dir = %q\n  catalog   = [%q]\n  account   = \"acme/web\"\n}\n", b.state, b.catalog) +
		body
}

func (b *bed) factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"sandboxer": func() (tfprotov6.ProviderServer, error) {
			p := New("test", testExtensions())
			b.t.Cleanup(func() {
				if err := p.Close(); err != nil {
					b.t.Errorf("closing the provider: %v", err)
				}
			})
			return p.server(), nil
		},
	}
}

// run applies the steps through Terraform; afterwards nothing may be alive. A step ends with two plans that must be empty, one
// of them refreshed, so none has to follow only to see that.
func (b *bed) run(steps ...resource.TestStep) {
	b.t.Helper()
	requireTerraform(b.t)
	resource.Test(b.t.(*testing.T), resource.TestCase{ProtoV6ProviderFactories: b.factories(), Steps: steps})
	if left := b.live(); len(left) > 0 {
		b.t.Errorf("after destroy %d sandboxes are alive: %v", len(left), left)
	}
	b.verify()
}

// engine looks behind the scenes, as the command line would.
func (b *bed) engine() *engine.Engine {
	b.t.Helper()
	e, err := engine.New(engine.Options{Extensions: testExtensions(), StateDir: b.state, Catalog: []string{b.catalog}, Account: "acme/web"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = e.Close() })
	return e
}

func (b *bed) vendor() *vendor.Vendor { return vendor.At(filepath.Join(b.state, saasstub.Handler)) }

func (b *bed) script(rules ...vendor.Rule) {
	b.t.Helper()
	if err := vendor.WriteScript(filepath.Join(b.state, saasstub.Handler), vendor.Script{Rules: rules}); err != nil {
		b.t.Fatal(err)
	}
}

// live lists what is alive according to the ledger and to the vendor.
func (b *bed) live() []string {
	b.t.Helper()
	var out []string
	all, err := b.engine().List(context.Background(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, s := range all {
		if s.State != stateExpired {
			out = append(out, fmt.Sprintf("%s %s %s", s.ID, s.Name, s.State))
		}
	}
	objects, err := b.vendor().Objects()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, o := range objects {
		if o.State != vendor.StateExpired && o.GoneAt.IsZero() {
			out = append(out, fmt.Sprintf("vendor object %s %s", o.Name, o.State))
		}
	}
	return out
}

func verifyLedger(ctx context.Context, e *engine.Engine) (events int64, findings []string, err error) {
	v, err := e.Verify(ctx, engine.Evidence{})
	return v.Events, v.Findings, err
}

func (b *bed) verify() {
	b.t.Helper()
	if _, findings, err := verifyLedger(context.Background(), b.engine()); err != nil || len(findings) > 0 {
		b.t.Errorf("ledger verify: %v %v", findings, err)
	}
}

// destroyAll ends what is alive and returns the ids of all there ever were.
func (b *bed) destroyAll() (ids []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, account := range []string{"acme/web", "acme/api", engine.DefaultAccount} {
		e, err := engine.New(engine.Options{Extensions: testExtensions(), StateDir: b.state, Catalog: []string{b.catalog}, Account: account})
		if err != nil {
			return ids // a test about a broken catalog made nothing
		}
		all, err := e.List(ctx, true)
		if err != nil {
			b.t.Errorf("cleaning up: %v", err)
		}
		for _, s := range all {
			ids = append(ids, string(s.ID))
			if s.State == stateDestroyed {
				continue
			}
			if _, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
				b.t.Errorf("cleaning up %s: %v", s.ID, err)
			}
		}
		if err := e.Close(); err != nil {
			b.t.Errorf("cleaning up: %v", err)
		}
	}
	return ids
}

// notRunning fails if a process, mount, control group or folder carries the id.
func (b *bed) notRunning(id string) {
	b.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range append(files, "/proc/self/mounts") {
		raw, err := os.ReadFile(f)
		// A host's loop may just look at what it watched, and sees then that it is gone.
		for end := time.Now().Add(10 * time.Second); err == nil && strings.Contains(string(raw), id) && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
			raw, err = os.ReadFile(f)
		}
		if err == nil && strings.Contains(string(raw), id) {
			b.t.Errorf("%s: %s is still there: %q", f, id, raw)
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/*" + id, "/sys/fs/cgroup/*/*" + id, filepath.Join(b.state, "local", id)} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			b.t.Errorf("left behind: %v (%v)", left, err)
		}
	}
}

// only returns the one live sandbox of the bed.
func (b *bed) only() engine.Sandbox {
	b.t.Helper()
	all, err := b.engine().List(context.Background(), false)
	if err != nil || len(all) != 1 {
		b.t.Fatalf("want one sandbox, have %d (%v)", len(all), err)
	}
	return all[0]
}
