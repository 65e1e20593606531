package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// vague is a vendor that makes the sandbox, loses the answer, and counts what
// it has made against the quota of the next request.
func vague(then extensions.Kind) extensions.Extension {
	var asked atomic.Int64
	return &hooked{handler: "vague", does: func(c *calls, _ extensions.Config) {
		provision := c.Provision
		c.Provision = func(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
			if asked.Add(1) > 1 {
				return extensions.Handle{}, extensions.Observation{}, extensions.Errorf(then, "no more than one at a time")
			}
			_, _, err := provision(ctx, spec)
			return extensions.Handle{}, extensions.Observation{}, err
		}
	}}
}

// What was found after a lost answer is there, whatever the next answer is: it
// is ended before another place is asked, and nothing is freed before that.
func TestWhatWasFoundIsNotForgottenForTheNextAnswer(t *testing.T) {
	t.Parallel()
	takesLong(t)
	for _, then := range []extensions.Kind{extensions.KindExhausted, extensions.KindUnavailable, extensions.KindInvalid,
		extensions.KindUnauthorized, extensions.KindUnsupported, extensions.KindUnreachable} {
		t.Run(string(then), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, having(vague(then)), onFiles(map[string]string{
				"extensions/ext.vague.yaml":   "id: ext.vague\nhandler: vague\nconfig: { dir: \"$VENDOR\" }\ncost: { per_hour: \"1.00 USD\" }\n",
				"profiles/profile.vague.yaml": "id: profile.vague\nversion: \"1.0.0\"\nextension: ext.vague\n" + common,
			}))
			b.grant(5 * dollar)
			b.script(saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoLoseAnswer, Times: 1})
			s, err := b.Create(t.Context(), engine.Request{Profile: "profile.vague", Name: "one"}, nil, nil)
			if there := b.alive(); err == nil || s.ID != "" || len(there) > 0 {
				t.Errorf("%s is told, %v are there: %v", s.ID, there, told(err))
			}
			// What was there for a moment is paid, and nothing is held for it any more.
			if w := b.balance(ledger.AccountWallet); w.DebitsPending != 0 || w.DebitsPosted <= 0 || w.DebitsPosted > dollar/100 {
				t.Errorf("held %d, spent %d", w.DebitsPending, w.DebitsPosted)
			}
			b.verified()
		})
	}
}
