package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// A place that takes fewer calls than come is served in turn; nobody is turned away, and nobody goes elsewhere.
func TestTenCreatesAtOnceSucceedAtAVendorThatTakesFew(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	const every = 200 * time.Millisecond
	rate := map[vendor.Op]vendor.Duration{vendor.OpCreate: vendor.Duration(every)}
	if err := saasstub.WriteScript(w.vendor, saasstub.Script{Every: rate}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 10 {
		wg.Go(func() {
			s, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: fmt.Sprint("n", n)}, nil, nil)
			if err != nil || s.Extension != "ext.first" {
				t.Errorf("%d: at %q: %v", n, s.Extension, err)
			}
		})
	}
	wg.Wait()
	if len(w.holds(w.vendor)) != 10 || len(w.holds(w.dear)) != 0 {
		t.Errorf("first holds %d, second %d", len(w.holds(w.vendor)), len(w.holds(w.dear)))
	}
	w.clean()
}

func TestALongPollSurvivesFiveBadGateways(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.does(w.vendor, saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoSlowReady, Delay: vendor.Duration(300 * time.Millisecond)},
		saasstub.Rule{Op: vendor.OpGet, Do: vendor.DoBadGateway, Skip: 2, Times: 5}) // the first looks are the create's own
	s, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
	if err != nil || s.Extension != "ext.first" || len(w.holds(w.vendor)) != 1 || len(w.holds(w.dear)) != 0 {
		t.Errorf("at %q: %v; first holds %d, second %d", s.Extension, err, len(w.holds(w.vendor)), len(w.holds(w.dear)))
	}
	w.clean()
}
