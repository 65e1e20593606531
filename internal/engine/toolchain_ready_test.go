package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
)

// crashing is the stub vendor as if what runs in its sandboxes ended with the
// first command.
type crashing struct{ extensions.Extension }

func (x crashing) Describe() extensions.Descriptor {
	d := x.Extension.Describe()
	d.Handler, d.Powers = "crashing", []extensions.Power{extensions.PowerExec}
	d.NamedOnly, d.Capabilities.CapacityQuery, d.Capabilities.ExtendTTL = false, false, false
	return d
}

type crashingBackend struct {
	extensions.Backend
	extensions.Execer
	ran *atomic.Bool
}

func (x crashing) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	b, err := x.Extension.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return crashingBackend{b, b.(extensions.Execer), new(atomic.Bool)}, nil
}

func (b crashingBackend) Exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	b.ran.Store(true)
	return b.Execer.Exec(ctx, h, req)
}

func (b crashingBackend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Reachability, error) {
	if b.ran.Load() {
		return extensions.Reachability{}, extensions.Errorf(extensions.KindFailed, "the service db has ended with exit code 42")
	}
	return b.Backend.WaitReady(ctx, spec, h)
}

func TestWhatEndsWhileTheToolchainRunsFailsTheCreate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := folder(t, map[string]string{
		"extensions/ext.crash.yaml": "id: ext.crash\ntitle: Crash\nhandler: crashing\nconfig: { dir: \"" + b.dir + "/saas-stub\" }\n",
		"profiles/t.yaml":           "id: profile.t\nversion: \"1.0.0\"\nextension: ext.crash\n" + common + "toolchain: { install: [\"true\"] }\n",
	})
	e, err := engine.New(engine.Options{Extensions: append(all(), crashing{saasstub.New()}), StateDir: b.dir, Account: "acme/web", Catalog: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	if _, err = e.Create(t.Context(), engine.Request{Profile: "profile.t", Name: "one"}, nil, nil); !extensions.IsKind(err, extensions.KindFailed) || !strings.Contains(err.Error(), "exit code 42") {
		t.Errorf("%v", err)
	}
}
