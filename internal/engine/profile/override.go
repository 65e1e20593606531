package profile

import (
	"cmp"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Overridable are the fields that a profile may leave to its requests. A request may choose an extension in any case
// where the profile pins none.
var Overridable = []string{"extension", "image", "resources"}

// Sizes are limits that a request sets instead of its profile's; "" and 0 leave the profile's.
type Sizes struct {
	CPU      string `json:"cpu,omitempty"` // vCPUs, such as "0.5"
	MemoryMB int64  `json:"memory_mb,omitempty"`
	DiskMB   int64  `json:"disk_mb,omitempty"`
	Pids     int64  `json:"pids,omitempty"`
	// GPU replaces the profile's as a whole; its count is 1 if only the model is given.
	GPU extensions.GPU `json:"gpu,omitzero"`
}

// override lays what the request may set over the profile, and refuses the rest by name.
func (r *resolver) override() {
	own := *r.p
	if r.may("image", r.req.Image != "") {
		r.failAt("image", checkImage(r.req.Image))
		if own.Compose != nil || own.Containers != nil {
			r.fail(invalid("%s runs services with images of their own", r.p.Ref()).
				WithRemedy("remove image, or use a profile without compose and containers").At("image"))
		}
		own.Image = &Image{Pull: &r.req.Image}
	}
	if s := r.req.Resources; r.may("resources", s != nil) {
		own.Resources = r.sized(*s)
	}
	r.p = &own
}

// may reports whether a request that sets a field may.
func (r *resolver) may(field string, set bool) bool {
	if !set {
		return false
	}
	if !slices.Contains(r.p.Overrides, field) {
		r.fail(invalid("%s does not let its requests set %s", r.p.Ref(), field).
			WithRemedy("remove %s, or add it to overrides of the profile", field).At(field))
		return false
	}
	return true
}

// sized returns the profile's limits with those of the request.
func (r *resolver) sized(s Sizes) *Resources {
	out := value(r.p.Resources, Resources{})
	if s.CPU != "" {
		milli, err := parseCPU(s.CPU)
		r.failAt("resources", err)
		cpu := CPU(milli)
		out.CPU = &cpu
	}
	for _, limit := range []struct {
		name  string
		asked int64
		most  int64
		to    **int64
	}{{"memory_mb", s.MemoryMB, mostMemoryMB, &out.MemoryMB}, {"disk_mb", s.DiskMB, mostDiskMB, &out.DiskMB},
		{"pids", s.Pids, mostPids, &out.Pids}} {
		if limit.asked != 0 {
			r.failAt("resources", checkPositive(limit.name, &limit.asked, limit.most))
			*limit.to = &limit.asked
		}
	}
	if s.GPU != (extensions.GPU{}) {
		gpu := GPU{Model: s.GPU.Model, Count: cmp.Or(s.GPU.Count, 1)}
		r.failAt("resources", gpu.check())
		out.GPU = &gpu
	}
	return &out
}
