package route

import (
	"fmt"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func checkLimits(j *judge, c *Candidate) (string, string) {
	r := j.Spec.Resources
	if c.Capabilities.EnforcesResourceLimits {
		return "", ""
	}
	var limits []string
	for _, l := range []struct {
		name string
		set  bool
	}{{"cpu", r.CPU != nil}, {"memory_mb", r.MemoryMB != nil}, {"disk_mb", r.DiskMB != nil}, {"pids", r.Pids != nil}} {
		if l.set {
			limits = append(limits, l.name)
		}
	}
	if len(limits) == 0 {
		return "", ""
	}
	if r.BestEffort {
		j.notice("%s does not hold limits: %s is best effort there", c.ID(), strings.Join(limits, ", "))
		return "", ""
	}
	return "it does not hold limits, and the profile limits " + strings.Join(limits, ", "), "set resources.best_effort: true, or remove the limits"
}

func checkResources(j *judge, c *Candidate) (string, string) {
	r := j.Spec.Resources
	maxCPU, maxMemory := c.Capabilities.MaxVCPU, c.Capabilities.MaxMemoryMB
	if c.Host != nil && c.Host.Cost != nil { // the only place where an owner states a size
		maxCPU, maxMemory = smaller(maxCPU, c.Host.Cost.CPU), smaller(maxMemory, c.Host.Cost.MemoryMB)
	}
	var over, help []string
	if r.CPU != nil && maxCPU != nil && int64(*r.CPU) > *maxCPU*1000 {
		over = append(over, fmt.Sprintf("cpu %s is above its %d", milliText(*r.CPU), *maxCPU))
		help = append(help, fmt.Sprintf("cpu to at most %d", *maxCPU))
	}
	if r.MemoryMB != nil && maxMemory != nil && *r.MemoryMB > *maxMemory {
		over = append(over, fmt.Sprintf("memory_mb %d is above its %d", *r.MemoryMB, *maxMemory))
		help = append(help, fmt.Sprintf("memory_mb to at most %d", *maxMemory))
	}
	if len(over) == 0 {
		return "", ""
	}
	return strings.Join(over, ", "), "set " + strings.Join(help, " and ")
}

// smaller of a limit that may be unknown (nil) and a size that may be (0).
func smaller(limit *int64, size int64) *int64 {
	if size <= 0 || limit != nil && *limit <= size {
		return limit
	}
	return &size
}

func milliText(m extensions.Milli) string {
	s := fmt.Sprintf("%d.%03d", m/1000, m%1000)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

func checkGPU(j *judge, c *Candidate) (string, string) {
	if g := j.Spec.Resources.GPU; g == nil || g.Count == 0 || c.Capabilities.GPU {
		return "", ""
	}
	return "it has no GPU", "remove resources.gpu, or choose a place with one"
}

func checkMaxCost(j *judge, c *Candidate) (string, string) {
	limit := j.Policy.MaxCostPerHour
	if limit == nil {
		return "", ""
	}
	if c.Price.Hourly == nil {
		if c.selfHosted() {
			j.notice("what %s costs is not known; as nobody sends a bill for it, max_cost_per_hour lets it pass", c.ID())
			return "", ""
		}
		return fmt.Sprintf("what it costs per hour is not known, and at most %s is wanted", limit),
			"add a price book for " + c.Binding + " to the catalog, or drop max_cost_per_hour"
	}
	order, err := c.Price.Hourly.Compare(*limit)
	switch {
	case err != nil:
		return fmt.Sprintf("it costs %s per hour, which cannot be compared with %s", c.Price.Hourly, limit),
			"state max_cost_per_hour in " + string(c.Price.Hourly.Currency)
	case order > 0:
		return fmt.Sprintf("it costs %s per hour, and at most %s is wanted", c.Price.Hourly, limit),
			fmt.Sprintf("raise max_cost_per_hour to %s, or ask for less cpu and memory", c.Price.Hourly)
	}
	return "", ""
}
