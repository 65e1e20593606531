package daytona

import (
	"context"
	"net/http"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
)

// lacks is what a sandbox has to be asked to change for a size, and whether it must be stopped for that: it runs on only where it
// gets more cores or memory. A disk cannot shrink.
func (s *sandbox) lacks(r extensions.Resources) (change map[string]float32, stop bool) {
	change = map[string]float32{}
	for name, x := range map[string]struct{ asked, is float32 }{"cpu": {units(r.CPU, 1000), s.Cpu},
		"memory": {units(r.MemoryMB, 1024), s.Memory}, "disk": {max(units(r.DiskMB, 1024), s.Disk), s.Disk}} {
		if x.asked != 0 && x.asked != x.is {
			change[name], stop = x.asked, stop || x.asked < x.is || name == "disk"
		}
	}
	return change, stop
}

// resize gives a container that came from a snapshot the size of its spec.
func (b *backend) resize(ctx context.Context, spec extensions.Spec, s *sandbox) (err error) {
	h, r := handle(spec.ID, s.Id), spec.Resources.RoundUp(b.desc.Capabilities)
	change, stop := s.lacks(r)
	if b.vm || len(r.Limits()) == 0 {
		return nil
	}
	if stop {
		s, err = b.pause(ctx, h)
	}
	if err == nil && len(change) > 0 {
		if s, err = b.act(ctx, http.MethodPost, s.Id, change, "resize"); err == nil {
			s, err = b.await(ctx, h, func(s *sandbox) bool {
				left, _ := s.lacks(r)
				return len(left) == 0 && b.settled(s) && !s.at(api.SandboxStateResizing)
			})
		}
	}
	if err == nil && b.rests(s) {
		_, err = b.Resume(ctx, h, spec.Deadline)
	}
	return err
}
