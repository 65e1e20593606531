package meter

import (
	"math/big"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// hostPart is one resource of a host.
type hostPart struct {
	component, unit string
	have            int64 // in quanta, of which per make a unit
	per             int64
	// ratio is OpenCost's default price per unit and hour in 10^-11 USD: CPU 0.031611, RAM 0.004237 and
	// storage 0.00005479452 per GiB, GPU 0.95 (github.com/opencost/opencost, configs/default.json). Only
	// the ratios count; they are scaled to the host's cost.
	ratio int64
	size  func(*Sizes) *int64 // of a sandbox; nil if nothing is filled in
	quota int64               // the host's own quota, in the quanta of sizes
}

func hostParts(c extensions.HostCost) []hostPart {
	parts := []hostPart{
		{ComponentVCPU, "vcpu-hour", c.CPU, 1, 3_161_100_000, func(s *Sizes) *int64 { return &s.VCPUMilli }, c.CPU * milli},
		{ComponentMemory, "gib-hour", c.MemoryMB, mibPer, 423_700_000, func(s *Sizes) *int64 { return &s.MemoryMiB }, c.MemoryMB},
		{ComponentDisk, "disk-gib-hour", c.DiskMB, mibPer, 5_479_452, func(s *Sizes) *int64 { return &s.DiskMiB }, c.DiskMB},
		{ComponentGPU, "gpu-hour", c.GPU, 1, 95_000_000_000, nil, c.GPU},
	}
	return slices.DeleteFunc(parts, func(p hostPart) bool { return p.have == 0 })
}

// fromHost shares a host's cost as OpenCost does: unit prices in a fixed ratio, scaled so that the whole
// host costs what its owner pays. A sandbox is charged max(reserved, used), paused or not, because its
// share stays reserved. What no sandbox reserves is the host's idle cost: see ShareHost.
func (p *pricing) fromHost(h extensions.Host) error {
	c := *h.Cost
	perHour, currency, err := hourlyPrice(c.PerHour)
	if err != nil {
		return extensions.Errorf(extensions.KindInvalid, "host %s: cost.per_hour: %w", h.Name, err)
	}
	if err := CheckHostCost(c); err != nil {
		return extensions.Errorf(extensions.KindInvalid, "host %s: %w", h.Name, err)
	}
	var slots int64
	if h.Capacity != nil {
		slots = h.Capacity.MaxSandboxes
	}
	p.fixed(BasisHost, currency, ConfidenceEstimated, "cost of host "+h.Name)
	parts := hostParts(c)
	switch {
	case c.Idle == extensions.IdleDedicated:
		p.Prices = []SnapshotPrice{always(ComponentSandbox, unitSandboxHour, perHour, ConfidenceEstimated)}
		p.assume("host %s is dedicated: its sandboxes bear all of its %s per hour", h.Name, c.PerHour)
		return nil
	case len(parts) == 0:
		return p.perSlot(h, perHour, slots)
	}
	if err := p.shareHost(h, perHour, parts, slots); err != nil {
		return err
	}
	rest := "idle cost is not included"
	if c.Idle == extensions.IdleShared {
		rest = "its sandboxes share the idle cost later, and a single one bears all of it"
	}
	p.assume("host %s costs %s per hour for %s, shared in OpenCost's ratio; %s", h.Name, c.PerHour, sizeOf(c), rest)
	return nil
}

// shareHost prices each part and fills in sizes that the request leaves open.
func (p *pricing) shareHost(h extensions.Host, perHour UnitPrice, parts []hostPart, slots int64) error {
	prices, err := hostPrices(perHour, parts)
	if err != nil {
		return extensions.Errorf(extensions.KindInvalid, "host %s: %w", h.Name, err)
	}
	for i, part := range parts {
		p.Prices = append(p.Prices, always(part.component, part.unit, prices[i], ConfidenceEstimated))
		if part.size != nil {
			p.shareOf(part.component, part.size(&p.Sizes), h, part.quota, slots)
		}
	}
	return nil
}

// CheckHostCost returns KindInvalid for negative sizes and an unknown sharing.
func CheckHostCost(c extensions.HostCost) error {
	if min(c.CPU, c.MemoryMB, c.DiskMB, c.GPU) < 0 {
		return extensions.Errorf(extensions.KindInvalid, "a size in cost is negative").
			WithRemedy("give the machine's size, or leave it out")
	}
	if c.Idle != "" && !slices.Contains(extensions.IdleSharings, c.Idle) {
		return extensions.Errorf(extensions.KindInvalid, "cost.idle %q is unknown", extensions.Clean(c.Idle, 40)).
			WithRemedy("use one of %s", strings.Join(extensions.IdleSharings, ", "))
	}
	return nil
}

func sizeOf(c extensions.HostCost) string {
	var parts []string
	for _, p := range []struct {
		n    int64
		unit string
	}{{c.CPU, "vCPU"}, {c.MemoryMB, "MiB"}, {c.DiskMB, "MiB of disk"}, {c.GPU, "GPU"}} {
		if p.n > 0 {
			parts = append(parts, formatInt(p.n)+" "+p.unit)
		}
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

// hostPrices splits perHour so that all units at their prices sum to perHour, within half a pico-unit per
// unit.
func hostPrices(perHour UnitPrice, parts []hostPart) ([]UnitPrice, error) {
	// In units of 1/1024 ratio points, so that MiB stay whole. The numbers may exceed 64 bits; there are
	// few, so big.Int costs little.
	whole := new(big.Int)
	for _, p := range parts {
		weight := new(big.Int).Mul(big.NewInt(p.ratio), big.NewInt(mibPer/p.per))
		whole.Add(whole, weight.Mul(weight, big.NewInt(p.have)))
	}
	prices := make([]UnitPrice, len(parts))
	for i, p := range parts {
		n := new(big.Int).Mul(big.NewInt(int64(perHour)), new(big.Int).Mul(big.NewInt(p.ratio), big.NewInt(mibPer)))
		n.Add(n.Lsh(n, 1), whole)
		n.Div(n, new(big.Int).Lsh(whole, 1)) // half up
		if !n.IsInt64() {
			return nil, overflow("sharing %s per hour", perHour)
		}
		prices[i] = UnitPrice(n.Int64())
	}
	return prices, nil
}

// perSlot prices a host of unknown size.
func (p *pricing) perSlot(h extensions.Host, perHour UnitPrice, slots int64) error {
	if slots <= 0 {
		p.Basis, p.Confidence, p.Currency = BasisUnknown, ConfidenceUnknown, ""
		p.unknown("a sandbox's share of host %s: set cost.cpu and cost.memory_mb, or capacity.max_sandboxes", h.Name)
		return nil
	}
	price := UnitPrice((int64(perHour) + slots/2) / slots)
	p.Prices = []SnapshotPrice{always(ComponentSandbox, unitSandboxHour, price, ConfidenceEstimated)}
	p.assume("each sandbox takes 1/%d of host %s, its max_sandboxes", slots, h.Name)
	return nil
}

// shareOf fills a size that the request leaves open with a fair share of the host.
func (p *pricing) shareOf(what string, size *int64, h extensions.Host, whole, slots int64) {
	if *size != 0 || slots <= 0 {
		return
	}
	*size = max(1, whole/slots)
	p.assume("the request sets no %s: 1/%d of host %s, its max_sandboxes", what, slots, h.Name)
}
