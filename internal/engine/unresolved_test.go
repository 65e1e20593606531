package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	money "github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// blind is a vendor that finds nothing again by id.
var blind = &hooked{handler: "blind", says: func(d *extensions.Descriptor) { d.Find = extensions.Find{Strength: extensions.FindNone} },
	does: func(c *calls, _ extensions.Config) {
		provision := c.Provision
		c.Provision = func(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
			h, o, err := provision(ctx, spec)
			if err != nil {
				h = extensions.Handle{} // lost with the answer
			}
			return h, o, err
		}
		c.Find = func(context.Context, extensions.ID) (extensions.Handle, error) {
			return extensions.Handle{}, extensions.Errorf(extensions.KindIndeterminate, "nothing is found by id here")
		}
	}}

// What nobody will ever know is given up once its own deadline is well over.
func TestWhatNobodyWillEverKnow(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]string{
		"extensions/ext.blind.yaml":   "id: ext.blind\nhandler: blind\nconfig: { dir: \"$VENDOR\" }\ncost: { per_hour: \"1.00 USD\" }\n",
		"profiles/profile.blind.yaml": profile("profile.blind", "extension: ext.blind\n"),
	}, func(t *testing.T, b *bench) {
		b.grant(5 * dollar)
		b.script(saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoLoseAnswer})
		s, err := b.Create(t.Context(), engine.Request{Profile: "profile.blind", Name: "one"}, nil, nil)
		if err == nil || s.ID == "" {
			t.Fatalf("%s, %v", s.ID, err)
		}
		b.script()
		if _, err := b.later(time.Hour+time.Minute).Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err == nil {
			t.Error("given up a minute after its deadline")
		}
		b.pays("as long as it may exist", 4*dollar, dollar, 0)
		r, err := b.later(59*time.Minute).Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
		if err != nil || !strings.Contains(fmt.Sprint(r.Notices), "exposure") {
			t.Errorf("%+v, %v", r.Notices, err)
		}
		b.pays("given up", 5*dollar, 0, 0)
		if x := b.balance(money.AccountExposure); x.DebitsPosted != dollar {
			t.Errorf("%+v", x)
		}
		evs, err := b.book().Events(t.Context(), "acme", 1, 0)
		if err != nil || evs[len(evs)-1].Type != "sandbox.unresolved" && !strings.HasSuffix(evs[len(evs)-1].Type, ".unresolved") {
			t.Errorf("%+v, %v", evs[len(evs)-1], err)
		}
	}, having(blind))
}
