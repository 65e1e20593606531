package meter

import (
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Mode says whether a sandbox ran or was paused during a segment.
type Mode string

const (
	ModeRunning Mode = "running"
	ModePaused  Mode = "paused"
)

// Sizes are what a sandbox is given. Zero CPU, memory or disk is unknown.
type Sizes struct {
	VCPUMilli int64  `json:"vcpu_milli,omitempty"`
	MemoryMiB int64  `json:"memory_mib,omitempty"`
	DiskMiB   int64  `json:"disk_mib,omitempty"`
	GPUs      int64  `json:"gpus,omitempty"`
	GPUModel  string `json:"gpu_model,omitempty"`
}

// Segment is a stretch of a sandbox's life in one mode with one set of sizes. Segments are contiguous.
// Compute Milliseconds as the difference of the Unix milliseconds of both ends, so that the segments of a
// life add up exactly.
type Segment struct {
	Mode         Mode  `json:"mode"`
	Milliseconds int64 `json:"ms"`
	Sizes        Sizes `json:"sizes"`
	// What the backend measured; nil = not measured.
	CPUMillis       *int64 `json:"cpu_ms,omitempty"` // ms of one vCPU, active
	MemoryMiBMillis *int64 `json:"mib_ms,omitempty"` // MiB x ms used
	EgressBytes     *int64 `json:"egress,omitempty"` // bytes out
}

func (s Segment) check() error {
	if s.Mode != ModeRunning && s.Mode != ModePaused {
		return extensions.Errorf(extensions.KindInvalid, "segment: unknown mode %q", s.Mode)
	}
	for _, n := range []int64{s.Milliseconds, s.Sizes.VCPUMilli, s.Sizes.MemoryMiB, s.Sizes.DiskMiB, s.Sizes.GPUs,
		orZero(s.CPUMillis), orZero(s.MemoryMiBMillis), orZero(s.EgressBytes)} {
		if n < 0 {
			return extensions.Errorf(extensions.KindInvalid, "segment: the quantity %d is negative", n)
		}
	}
	return nil
}

func orZero(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// SizesOf returns the sizes that a request asks for.
func SizesOf(r extensions.Resources) Sizes {
	s := Sizes{MemoryMiB: orZero(r.MemoryMB), DiskMiB: orZero(r.DiskMB)}
	if r.CPU != nil {
		s.VCPUMilli = int64(*r.CPU)
	}
	if r.GPU != nil {
		s.GPUs, s.GPUModel = r.GPU.Count, r.GPU.Model
	}
	return s
}

// or fills unknown sizes of s from defaults.
func (s Sizes) or(defaults Sizes) Sizes {
	for _, f := range []struct{ have, other *int64 }{
		{&s.VCPUMilli, &defaults.VCPUMilli}, {&s.MemoryMiB, &defaults.MemoryMiB}, {&s.DiskMiB, &defaults.DiskMiB},
	} {
		if *f.have == 0 {
			*f.have = *f.other
		}
	}
	return s
}

const gpuKey = ComponentGPU + ":"

// gpuComponent returns the component of a model; "" is any.
func gpuComponent(model string) string {
	if model == "" {
		return ComponentGPU
	}
	return gpuKey + model
}

// base returns a component without the model or label after the colon.
func base(component string) string {
	b, _, _ := strings.Cut(component, ":")
	return b
}

// Map returns the known sizes as integers by name, as a ledger keeps them: milli_vcpu, memory_mib,
// disk_mib, "gpu:" and the model.
func (s Sizes) Map() map[string]int64 {
	m := map[string]int64{}
	for k, n := range map[string]int64{"milli_vcpu": s.VCPUMilli, "memory_mib": s.MemoryMiB, "disk_mib": s.DiskMiB, gpuKey +
		s.GPUModel: s.GPUs} {
		if n != 0 {
			m[k] = n
		}
	}
	return m
}

// SizesFromMap reads what Map wrote; it ignores other names.
func SizesFromMap(m map[string]int64) Sizes {
	s := Sizes{VCPUMilli: m["milli_vcpu"], MemoryMiB: m["memory_mib"], DiskMiB: m["disk_mib"]}
	for k, n := range m {
		if model, ok := strings.CutPrefix(k, gpuKey); ok {
			s.GPUs, s.GPUModel = n, model
		}
	}
	return s
}
