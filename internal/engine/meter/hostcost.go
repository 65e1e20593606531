package meter

import (
	"math/big"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// OpenCost's default prices per hour give the ratio of a vCPU to a GiB of
// memory: 0.031611 and 0.004237 USD (opencost/opencost, configs/default.json).
// Only their ratio counts here; it is scaled to what the host costs.
const (
	ratioVCPU = 31611
	ratioGiB  = 4237
)

// fromHost shares a host's cost as OpenCost does: unit prices in a fixed
// ratio, scaled so that the whole host costs what its owner pays; a sandbox is
// charged for max(reserved, used), paused or not, because its share stays
// reserved. What no sandbox reserves is the host's idle cost and is charged to
// none. GPUs and disks are part of the host's cost and not priced apart.
func (p *pricing) fromHost(h extensions.Host) error {
	perHour, currency, err := hourlyPrice(h.Cost.PerHour)
	if err != nil {
		return extensions.Errorf(extensions.KindInvalid, "host %s: cost.per_hour: %w", h.Name, err)
	}
	if h.Cost.CPU < 0 || h.Cost.MemoryMB < 0 {
		return extensions.Errorf(extensions.KindInvalid, "host %s: cost.cpu or cost.memory_mb is negative", h.Name)
	}
	var slots int64
	if h.Capacity != nil {
		slots = h.Capacity.MaxSandboxes
	}
	p.fixed(BasisHost, currency, ConfidenceEstimated, "cost of host "+h.Name)
	if h.Cost.CPU == 0 && h.Cost.MemoryMB == 0 {
		return p.perSlot(h, perHour, slots)
	}
	vcpu, gib, err := hostPrices(perHour, h.Cost.CPU, h.Cost.MemoryMB)
	if err != nil {
		return extensions.Errorf(extensions.KindInvalid, "host %s: %w", h.Name, err)
	}
	if h.Cost.CPU > 0 {
		p.Prices = append(p.Prices, always(ComponentVCPU, "vcpu-hour", vcpu, ConfidenceEstimated))
		p.shareOf("cpu", &p.Sizes.VCPUMilli, h, h.Cost.CPU*milli, slots)
	}
	if h.Cost.MemoryMB > 0 {
		p.Prices = append(p.Prices, always(ComponentMemory, "gib-hour", gib, ConfidenceEstimated))
		p.shareOf("memory", &p.Sizes.MemoryMiB, h, h.Cost.MemoryMB, slots)
	}
	p.assume("host %s costs %s per hour for %d vCPU and %d MiB, shared in OpenCost's ratio; what stays idle is not part of it",
		h.Name, h.Cost.PerHour, h.Cost.CPU, h.Cost.MemoryMB)
	return nil
}

// hostPrices splits perHour so that cpu x vcpu + memory x gib = perHour, to
// half a pico-unit per unit.
func hostPrices(perHour UnitPrice, cpu, memoryMB int64) (vcpu, gib UnitPrice, err error) {
	// In units of 1/1024 ratio points, so that MiB stay whole. The numbers can
	// pass 64 bits for absurd hosts; they are few, so big.Int is no burden.
	whole := new(big.Int).Add(
		new(big.Int).Mul(big.NewInt(cpu), big.NewInt(ratioVCPU*mibPer)),
		new(big.Int).Mul(big.NewInt(memoryMB), big.NewInt(ratioGiB)))
	scaled := func(have, ratio int64) UnitPrice {
		if have == 0 {
			return 0 // nothing is priced by it
		}
		n := new(big.Int).Mul(big.NewInt(int64(perHour)), big.NewInt(ratio*mibPer))
		n.Add(n.Lsh(n, 1), whole)
		n.Div(n, new(big.Int).Lsh(whole, 1)) // half up
		if !n.IsInt64() {
			err = overflow("sharing %s per hour", perHour)
			return 0
		}
		return UnitPrice(n.Int64())
	}
	vcpu, gib = scaled(cpu, ratioVCPU), scaled(memoryMB, ratioGiB)
	return vcpu, gib, err
}

// perSlot is for a host whose size nobody said.
func (p *pricing) perSlot(h extensions.Host, perHour UnitPrice, slots int64) error {
	if slots <= 0 {
		p.Basis, p.Confidence, p.Currency = BasisUnknown, ConfidenceUnknown, ""
		p.unknown("which share of host %s a sandbox takes: set cost.cpu and cost.memory_mb, or capacity.max_sandboxes", h.Name)
		return nil
	}
	price := UnitPrice((int64(perHour) + slots/2) / slots)
	p.Prices = []SnapshotPrice{always(ComponentSandbox, unitSandboxHour, price, ConfidenceEstimated)}
	p.assume("each sandbox takes 1/%d of host %s, its max_sandboxes", slots, h.Name)
	return nil
}

// shareOf fills a size the request leaves open with the host's fair share.
func (p *pricing) shareOf(what string, size *int64, h extensions.Host, whole, slots int64) {
	if *size != 0 || slots <= 0 {
		return
	}
	*size = max(1, whole/slots)
	p.assume("no %s was asked for: 1/%d of host %s, its max_sandboxes", what, slots, h.Name)
}
