package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestWhatEndsWhileTheToolchainRunsFailsTheCreate(t *testing.T) {
	t.Parallel()
	// What runs in its sandboxes ends with the first command.
	crashing := &hooked{handler: "crashing", does: func(c *calls, _ extensions.Config) {
		run, ready, ran := c.Exec, c.WaitReady, new(atomic.Bool)
		c.Exec = func(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
			ran.Store(true)
			return run(ctx, h, req)
		}
		c.WaitReady = func(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
			if ran.Load() {
				return extensions.Observation{}, extensions.Errorf(extensions.KindFailed, "the service db has ended with exit code 42")
			}
			return ready(ctx, spec, h)
		}
	}}
	b := newBench(t, having(crashing), onFiles(map[string]string{
		"extensions/ext.crash.yaml": "id: ext.crash\ntitle: Crash\nhandler: crashing\nconfig: { dir: \"$VENDOR\" }\n",
		"profiles/t.yaml": "id: profile.t\nversion: \"1.0.0\"\nextension: ext.crash\n" + common +
			"toolchain: { install: [\"true\"] }\n",
	}))
	if _, err := b.Create(t.Context(), engine.Request{Profile: "profile.t", Name: "one"}, nil, nil); !extensions.IsKind(err,
		extensions.KindFailed) || !strings.Contains(err.Error(), "exit code 42") {
		t.Errorf("%v", err)
	}
}
