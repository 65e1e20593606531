package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func TestMessagesSayWhatToWhatAndWhatNext(t *testing.T) {
	t.Parallel()
	takesLong(t)
	nobody := engine.Receipt{Version: 1, ID: "sbx-aaaaaaaaaaaaaaaaaaaa"}
	one := engine.Request{Profile: "profile.stub", Name: "one"}
	create := func(req engine.Request) func(context.Context, *bench) error {
		return func(ctx context.Context, b *bench) error { _, err := b.Create(ctx, req, nil, nil); return err }
	}
	for name, c := range map[string]struct {
		rules  []saasstub.Rule
		do     func(ctx context.Context, b *bench) error
		kind   extensions.Kind
		says   []string
		remedy []string
	}{
		"a full vendor is named as the catalog names it": {rules: []saasstub.Rule{{Op: vendor.OpCreate, Do: vendor.DoQuota}}, do: create(one),
			kind: extensions.KindExhausted, says: []string{"ext.saas-stub: provision: sbx-", "limit"}, remedy: []string{"quota"}},
		"what may exist is named with the command that shows it": {do: create(one),
			rules: []saasstub.Rule{{Op: vendor.OpCreate, Do: vendor.DoLoseAnswer, Times: 1}, {Op: vendor.OpAny, Do: vendor.DoUnreachable}},
			kind:  extensions.KindIndeterminate, says: []string{"connection refused", "may exist at ext.saas-stub"},
			remedy: []string{"sandboxer sandbox get sbx-", "sandboxer sandbox destroy sbx-"}},
		"a create that was cancelled left nothing": {kind: extensions.KindInterrupted,
			says: []string{`"one" was canceled`, "nothing of it is left"}, remedy: []string{"run the same command again"},
			do: func(ctx context.Context, b *bench) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				return create(one)(failpointtest.Inject(ctx, "engine.create.ready", func() error { cancel(); return nil }), b)
			}},
		"a create that took too long left nothing": {rules: []saasstub.Rule{{Op: vendor.OpStart, Do: vendor.DoSlowReady,
			Delay: vendor.Duration(time.Hour)}},
			kind: extensions.KindTimeout, says: []string{`"one" was not ready`, "nothing of it is left"}, remedy: []string{"timeouts.create"},
			do: func(ctx context.Context, b *bench) error {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				return create(one)(ctx, b)
			}},
		"a snapshot that is elsewhere": {do: create(engine.Request{Profile: "profile.stub", FromSnapshot: "snp-aaaaaaaaaaaaaaaaaaaa"}),
			kind: extensions.KindInvalid, says: []string{"snp-aaaaaaaaaaaaaaaaaaaa is not kept at ext.saas-stub"}, remedy: []string{"check the ID"}},
		"a change without its ledger": {do: func(ctx context.Context, b *bench) error { _, err := b.Update(ctx, nobody, one, nil); return err },
			kind: extensions.KindNotFound, says: []string{"ledger.db does not know sandbox sbx-a"}, remedy: []string{"ledger"}},
		"a use without its ledger": {do: func(ctx context.Context, b *bench) error {
			_, err := b.Exec(ctx, nobody, engine.ExecRequest{Command: []string{"true"}})
			return err
		}, kind: extensions.KindNotFound, says: []string{"ledger.db does not know sandbox sbx-a"}, remedy: []string{"ledger"}},
		"another specification": {kind: extensions.KindConflict, says: []string{`"one"`, "another specification"},
			remedy: []string{"sandboxer sandbox destroy sbx-"},
			do: func(ctx context.Context, b *bench) error {
				b.create(one)
				return create(engine.Request{Profile: "profile.stub", Name: "one", OnConflict: "adopt", Env: map[string]string{"A": "b"}})(ctx, b)
			}},
		"a vendor that cannot be reached to end one": {kind: extensions.KindUnreachable, says: []string{"connection refused"},
			remedy: []string{`on_unreachable_destroy = "forget"`},
			do: func(ctx context.Context, b *bench) error {
				s := b.create(one)
				b.script(saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
				_, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
				return err
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.script(c.rules...)
			err := c.do(context.Background(), b)
			if !extensions.IsKind(err, c.kind) {
				t.Fatalf("kind %s: %v", extensions.KindOf(err), err)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not said: %v", want, err)
				}
			}
			for _, want := range c.remedy {
				if !strings.Contains(extensions.RemedyOf(err), want) {
					t.Errorf("%q is not advised: %s", want, extensions.RemedyOf(err))
				}
			}
			for line := range strings.Lines(err.Error()) {
				if strings.Count(err.Error(), line) > 1 {
					t.Errorf("said twice: %s", line)
				}
			}
		})
	}
}
