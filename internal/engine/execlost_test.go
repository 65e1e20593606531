package engine_test

import (
	"context"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// A command whose answer is lost may have run: it is not run again, and not called unreachable.
func TestACommandWhoseAnswerIsLostRunsOnce(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	ctx := context.Background()
	s := w.create(engine.Request{Profile: "profile.two", Name: "one"})
	for do, c := range map[vendor.Action]struct {
		kind extensions.Kind
		ran  string
	}{
		vendor.DoLoseAnswer:  {extensions.KindIndeterminate, "x"},
		vendor.DoBadGateway:  {extensions.KindIndeterminate, ""},
		vendor.DoUnreachable: {extensions.KindUnreachable, ""},
		vendor.DoThrottle:    {extensions.KindUnavailable, ""},
	} {
		file := "ran-" + string(do)
		w.does(w.vendor, saasstub.Rule{Op: vendor.OpExec, Do: do, Times: 1})
		_, err := w.Exec(ctx, s.Receipt, engine.ExecRequest{Shell: "printf x >>" + file})
		if !extensions.IsKind(err, c.kind) {
			t.Errorf("%s: %s: %v", do, extensions.KindOf(err), err)
		}
		w.does(w.vendor)
		res, err := w.Exec(ctx, s.Receipt, engine.ExecRequest{Shell: "test -f " + file + " && cat " + file})
		if err != nil || string(res.Stdout) != c.ran {
			t.Errorf("%s: it left %q, want %q: %v", do, res.Stdout, c.ran, err)
		}
	}
	w.clean()
}
