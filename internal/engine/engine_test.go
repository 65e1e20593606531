package engine_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
)

// bench is one engine over its own folder; reopen is another process of the
// same user, elsewhere another machine.
type bench struct {
	t   *testing.T
	dir string
	now func() time.Time
	// catalog is "" for that of testdata.
	catalog string
	*engine.Engine
}

func all() []extensions.Extension {
	return []extensions.Extension{local.New(), saasstub.New(), saasstub.NewEventual()}
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	exttest.Guard(t, b.dir)
	t.Cleanup(b.removeAll)
	b.Engine = b.reopen()
	return b
}

// removeAll leaves nothing running, whatever a test did.
func (b *bench) removeAll() {
	ctx := context.Background()
	b.script()
	for _, x := range all() {
		be, err := x.Open(ctx, extensions.Config{Binding: "check", Account: "acme/web", StateDir: b.dir})
		if err != nil {
			b.t.Error(err)
			continue
		}
		obs, err := be.Status(ctx, nil)
		if err != nil {
			b.t.Error(err)
		}
		for _, o := range obs {
			if _, err := be.Teardown(ctx, o.Handle); err != nil {
				b.t.Error(err)
			}
		}
		_ = be.Close()
	}
}

// verifyLedger is Verify with pinned heads alone.
func verifyLedger(ctx context.Context, e *engine.Engine, heads ...string) (events int64, findings []string, err error) {
	v, err := e.Verify(ctx, engine.Evidence{Pins: heads})
	return v.Events, v.Findings, err
}

func (b *bench) reopen() *engine.Engine {
	b.t.Helper()
	e, err := engine.New(engine.Options{Extensions: all(), StateDir: b.dir, Account: "acme/web", Now: b.now, Catalog: []string{cmp.Or(b.catalog, "testdata/catalog")}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.t.Errorf("close: %v", err)
		}
	})
	return e
}

func (b *bench) create(req engine.Request) engine.Sandbox {
	b.t.Helper()
	s, err := b.Create(context.Background(), req, nil, nil)
	if err != nil {
		b.t.Fatalf("create: %v (%s)", err, extensions.RemedyOf(err))
	}
	return s
}

func TestASandboxIsMadeUsedAndEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one", TTL: "10m"})
	if s.State != "ready" || s.Extension != "ext.saas-stub" || s.Handle == "" || !s.ExpiresAt.Equal(s.CreatedAt.Add(10*time.Minute)) {
		t.Fatalf("created: %+v", s)
	}
	got, err := b.Get(ctx, s.Receipt)
	if err != nil || got.State != "ready" {
		t.Fatalf("get: %+v, %v", got, err)
	}
	res, err := b.Exec(ctx, s.Receipt, engine.ExecRequest{Command: []string{"echo", "hello"}})
	if err != nil || string(res.Stdout) != "hello\n" {
		t.Fatalf("exec: %+v, %v", res, err)
	}
	report, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	if err != nil || len(report.Charges) == 0 {
		t.Fatalf("destroy: %+v, %v", report, err)
	}
	if _, err := b.Get(ctx, s.Receipt); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Fatalf("after destroy: %v", err)
	}
	if n, findings, err := verifyLedger(ctx, b.Engine); err != nil || len(findings) > 0 || n == 0 {
		t.Fatalf("ledger: %d events, %v, %v", n, findings, err)
	}
}
