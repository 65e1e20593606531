package meter

import "slices"

// Components of a price: what is paid for.
const (
	ComponentCreation  = "creation"  // once per sandbox
	ComponentSandbox   = "sandbox"   // time, whatever the size
	ComponentVCPU      = "vcpu"      // vCPU time: allocated, or active where the book bills active-cpu
	ComponentMemory    = "memory"    // GiB time
	ComponentDisk      = "disk"      // GiB time; under storage-only, all that an idle sandbox pays
	ComponentGPU       = "gpu"       // GPU time, by model
	ComponentEgress    = "egress"    // traffic out
	ComponentSnapshot  = "snapshot"  // GiB time of keeping a snapshot; no sandbox pays it
	ComponentSurcharge = "surcharge" // a share of all other charges: price "0.25" adds 25 %
	ComponentFee       = "fee"       // the platform's own, never a vendor's: see Fee
)

// unit is one way to price a component. perUnit is the number of quanta per unit: quantities count quanta,
// prices are per whole unit.
type unit struct {
	name, component, quantum string
	perUnit                  int64
}

// Units that the engine itself uses.
const (
	unitCreation    = "creation"
	unitSandboxHour = "sandbox-hour"
	unitCharged     = "charged"
	unitKept        = "snapshot-gib-month"
)

const (
	secondMS = 1000
	hourMS   = 3600 * secondMS
	monthMS  = 730 * hourMS // the cloud convention: 8760 h / 12
	mibPer   = 1024         // MiB in a GiB
	milli    = 1000
)

// units is the complete list; any other unit is refused.
var units = []unit{
	{unitCreation, ComponentCreation, "count", 1},
	{"sandbox-second", ComponentSandbox, "ms", secondMS},
	{unitSandboxHour, ComponentSandbox, "ms", hourMS},
	{"vcpu-second", ComponentVCPU, "milli-vCPU x ms", milli * secondMS},
	{"vcpu-hour", ComponentVCPU, "milli-vCPU x ms", milli * hourMS},
	{"gib-second", ComponentMemory, "MiB x ms", mibPer * secondMS},
	{"gib-hour", ComponentMemory, "MiB x ms", mibPer * hourMS},
	{"disk-gib-second", ComponentDisk, "MiB x ms", mibPer * secondMS},
	{"disk-gib-hour", ComponentDisk, "MiB x ms", mibPer * hourMS},
	{"disk-gib-month", ComponentDisk, "MiB x ms", mibPer * monthMS},
	{"gpu-second", ComponentGPU, "GPU x ms", secondMS},
	{"gpu-hour", ComponentGPU, "GPU x ms", hourMS},
	{"egress-gib", ComponentEgress, "bytes", 1 << 30},
	{"egress-gb", ComponentEgress, "bytes", 1_000_000_000},
	{unitKept, ComponentSnapshot, "MiB x ms", mibPer * monthMS},
	{unitCharged, ComponentSurcharge, "nano-units", 1_000_000_000},
}

func unitNamed(name string) (unit, bool) {
	i := slices.IndexFunc(units, func(u unit) bool { return u.name == name })
	if i < 0 {
		return unit{}, false
	}
	return units[i], true
}

// sells reports whether the unit belongs to the component, given without model or label.
func (u unit) sells(component string) bool {
	if component == ComponentFee {
		return u.name == unitCreation || u.name == unitSandboxHour || u.name == unitCharged
	}
	return u.component == component
}

// Units lists every unit that a price book may use.
func Units() []string {
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = u.name
	}
	return names
}

// QuantaPerUnit returns how many quanta of a charge line's quantity make one unit, and the quantum's name;
// ok is false for an unknown unit.
func QuantaPerUnit(name string) (per int64, quantum string, ok bool) {
	u, ok := unitNamed(name)
	return u.perUnit, u.quantum, ok
}

// timed reports whether the component grows with time, so that minimum, increment and pause apply to it.
func timed(component string) bool {
	switch component {
	case ComponentSandbox, ComponentVCPU, ComponentMemory, ComponentDisk, ComponentGPU, ComponentSnapshot:
		return true
	}
	return false
}

// QuantumOf returns the quantum of a unit; for an unknown unit, the unit itself.
func QuantumOf(unit string) string {
	if _, quantum, ok := QuantaPerUnit(unit); ok {
		return quantum
	}
	return unit
}
