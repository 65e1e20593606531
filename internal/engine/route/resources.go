package route

import (
	"fmt"
	"strconv"
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

func (j *judge) sized() bool {
	r := j.Spec.Resources
	return r.CPU != nil || r.MemoryMB != nil || r.DiskMB != nil || r.GPU != nil
}

// extent is one size that is asked for, and what is known of how much there is.
type extent struct {
	field  string
	asked  *int64 // in quanta, of which unit make one of the others; nil = not asked
	unit   int64
	limit  *int64 // the place's; nil = not known
	stated int64  // by the host's owner, beside its cost; 0 = not stated
}

// most is the least of what is known; ok is false where nothing is.
func (x extent) most() (n int64, ok bool) {
	switch {
	case x.limit == nil:
		return x.stated, x.stated > 0
	case x.stated > 0:
		return min(*x.limit, x.stated), true
	}
	return *x.limit, true
}

func (x extent) fits() bool {
	most, known := x.most()
	return x.asked == nil || !known || *x.asked <= 0 || (*x.asked-1)/x.unit < most
}

// extents are the sizes that c is judged by.
func (j *judge) extents(c *Candidate) [4]extent {
	var has extensions.HostCost
	if c.Host != nil && c.Host.Cost != nil { // the only place where an owner states a size
		has = *c.Host.Cost
	}
	r := j.Spec.Resources
	var gpus *int64
	if r.GPU != nil {
		gpus = &r.GPU.Count
	}
	return [4]extent{
		{"cpu", (*int64)(r.CPU), 1000, c.Capabilities.MaxVCPU, has.CPU},
		{"memory_mb", r.MemoryMB, 1, c.Capabilities.MaxMemoryMB, has.MemoryMB},
		{"disk_mb", r.DiskMB, 1, nil, has.DiskMB},
		{"gpu.count", gpus, 1, nil, has.GPU},
	}
}

func passResources(j *judge, c *Candidate) bool {
	for _, x := range j.extents(c) {
		if !x.fits() {
			return false
		}
	}
	return true
}

func tellResources(j *judge, c *Candidate) (string, string) {
	var over, help []string
	for _, x := range j.extents(c) {
		if x.fits() {
			continue
		}
		most, _ := x.most()
		asked := strconv.FormatInt(*x.asked, 10)
		if x.unit == 1000 {
			asked = milliText(extensions.Milli(*x.asked))
		}
		over = append(over, fmt.Sprintf("%s %s is above its %d", x.field, asked, most))
		help = append(help, fmt.Sprintf("%s to at most %d", x.field, most))
	}
	return strings.Join(over, ", "), "set " + strings.Join(help, " and ")
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

func passPrice(_ *judge, c *Candidate) bool { return c.Price.Unpriced == nil }

func tellPrice(_ *judge, c *Candidate) (string, string) {
	return c.Price.Unpriced.Reason, c.Price.Unpriced.Help
}

func passMaxCost(j *judge, c *Candidate) bool {
	limit, hourly := j.Policy.MaxCostPerHour, c.Price.Hourly
	if hourly == nil {
		return c.selfHosted() || c.Price.Unpriced != nil // nobody sends a bill for it, or it is refused for that alone
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
