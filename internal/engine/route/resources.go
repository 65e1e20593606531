package route

import (
	"fmt"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// limitsOf names the limits that are asked for.
func limitsOf(r extensions.Resources) (limits []string) {
	for _, l := range []struct {
		name string
		set  bool
	}{{"cpu", r.CPU != nil}, {"memory_mb", r.MemoryMB != nil}, {"disk_mb", r.DiskMB != nil}, {"pids", r.Pids != nil}} {
		if l.set {
			limits = append(limits, l.name)
		}
	}
	return limits
}

func passLimits(j *judge, c *Candidate) bool {
	return c.Capabilities.EnforcesResourceLimits || j.Spec.Resources.BestEffort
}

func tellLimits(j *judge, _ *Candidate) (string, string) {
	return "it does not hold limits, and the profile limits " + strings.Join(j.limits, ", "), "set resources.best_effort: true, or remove the limits"
}

func noteLimits(j *judge, c *Candidate) {
	if !c.Capabilities.EnforcesResourceLimits {
		j.notice("%s does not hold limits: %s is best effort there", c.ID(), strings.Join(j.limits, ", "))
	}
}

// sizes of a place; nil is unknown.
func (c *Candidate) sizes() (cpu, memory *int64) {
	cpu, memory = c.Capabilities.MaxVCPU, c.Capabilities.MaxMemoryMB
	if c.Host != nil && c.Host.Cost != nil { // the only place where an owner states a size
		cpu, memory = smaller(cpu, &c.Host.Cost.CPU), smaller(memory, &c.Host.Cost.MemoryMB)
	}
	return cpu, memory
}

func (j *judge) tooSmall(c *Candidate) (cpu, memory bool) {
	r := j.Spec.Resources
	maxCPU, maxMemory := c.sizes()
	return r.CPU != nil && maxCPU != nil && int64(*r.CPU) > *maxCPU*1000, r.MemoryMB != nil && maxMemory != nil && *r.MemoryMB > *maxMemory
}

func passResources(j *judge, c *Candidate) bool {
	cpu, memory := j.tooSmall(c)
	return !cpu && !memory
}

func tellResources(j *judge, c *Candidate) (string, string) {
	r := j.Spec.Resources
	cpu, memory := j.tooSmall(c)
	maxCPU, maxMemory := c.sizes()
	var over, help []string
	if cpu {
		over = append(over, fmt.Sprintf("cpu %s is above its %d", milliText(*r.CPU), *maxCPU))
		help = append(help, fmt.Sprintf("cpu to at most %d", *maxCPU))
	}
	if memory {
		over = append(over, fmt.Sprintf("memory_mb %d is above its %d", *r.MemoryMB, *maxMemory))
		help = append(help, fmt.Sprintf("memory_mb to at most %d", *maxMemory))
	}
	return strings.Join(over, ", "), "set " + strings.Join(help, " and ")
}

// smaller of a limit that may be unknown (nil) and a size that may be (0).
func smaller(limit, size *int64) *int64 {
	if *size <= 0 || limit != nil && *limit <= *size {
		return limit
	}
	return size
}

func milliText(m extensions.Milli) string {
	s := fmt.Sprintf("%d.%03d", m/1000, m%1000)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

func (j *judge) wantsGPU() bool {
	g := j.Spec.Resources.GPU
	return g != nil && g.Count != 0
}

func passGPU(_ *judge, c *Candidate) bool { return c.Capabilities.GPU }

func tellGPU(*judge, *Candidate) (string, string) {
	return "it has no GPU", "remove resources.gpu, or choose a place with one"
}

func passMaxCost(j *judge, c *Candidate) bool {
	limit, hourly := j.Policy.MaxCostPerHour, c.Price.Hourly
	if hourly == nil {
		return c.selfHosted() // nobody sends a bill for it
	}
	return hourly.Currency == limit.Currency && hourly.Amount <= limit.Amount
}

func tellMaxCost(j *judge, c *Candidate) (string, string) {
	limit, hourly := j.Policy.MaxCostPerHour, c.Price.Hourly
	switch {
	case hourly == nil:
		return fmt.Sprintf("what it costs per hour is not known, and at most %s is wanted", limit),
			"add a price book for " + c.Binding + " to the catalog, or drop max_cost_per_hour"
	case hourly.Currency != limit.Currency:
		return fmt.Sprintf("it costs %s per hour, which cannot be compared with %s", hourly, limit),
			"state max_cost_per_hour in " + string(hourly.Currency)
	}
	return fmt.Sprintf("it costs %s per hour, and at most %s is wanted", hourly, limit),
		fmt.Sprintf("raise max_cost_per_hour to %s, or ask for less cpu and memory", hourly)
}

func noteMaxCost(j *judge, c *Candidate) {
	if c.Price.Hourly == nil {
		j.notice("what %s costs is not known; as nobody sends a bill for it, max_cost_per_hour lets it pass", c.ID())
	}
}
