package route

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// unenforced lists the requested limits that do not hold at c.
func (j *judge) unenforced(c *Candidate) []extensions.Limit {
	return slices.DeleteFunc(slices.Clone(j.limits), func(l extensions.Limit) bool { return slices.Contains(c.Capabilities.Limits, l) })
}

func passLimits(j *judge, c *Candidate) bool {
	return j.Spec.Resources.BestEffort || len(j.unenforced(c)) == 0
}

func tellLimits(j *judge, c *Candidate) (string, string) {
	lacks := j.named(j.unenforced(c))
	return "it does not enforce " + lacks, "set resources.best_effort: true, or remove " + lacks
}

func noteLimits(j *judge, c *Candidate) {
	if lacks := j.unenforced(c); len(lacks) > 0 {
		j.notice("%s does not enforce %s: best effort there", c.ID(), j.named(lacks))
	}
}

// named lists limits for people.
func (*judge) named(limits []extensions.Limit) string {
	names := make([]string, len(limits))
	for i, l := range limits {
		names[i] = string(l)
	}
	return strings.Join(names, ", ")
}

func (j *judge) sized() bool {
	r := j.Spec.Resources
	return r.CPU != nil || r.MemoryMB != nil || r.DiskMB != nil || r.GPU != nil
}

// extent is one requested size, and what is known of the available size.
type extent struct {
	field  string
	asked  *int64 // in quanta, of which unit make one of the others; nil = not requested
	unit   int64
	limit  *int64 // the place's; nil = unknown
	stated int64  // by the host's owner, beside its cost; 0 = not stated
}

// most returns the least of the known sizes; ok is false if none is known.
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

// extents are the sizes to judge c by.
func (j *judge) extents(c *Candidate) [4]extent {
	var has extensions.HostCost
	if c.Host != nil && c.Host.Cost != nil { // only here does an owner state a size
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

func passGPU(j *judge, c *Candidate) bool {
	model, has := j.Spec.Resources.GPU.Model, c.Capabilities
	return has.GPU && (model == "" || has.GPUModels == nil || slices.Contains(has.GPUModels, model))
}

func tellGPU(j *judge, c *Candidate) (string, string) {
	if c.Capabilities.GPU {
		return fmt.Sprintf("it has no GPU of the model %q", extensions.Clean(j.Spec.Resources.GPU.Model, 80)),
			"ask for one of " + strings.Join(c.Capabilities.GPUModels, ", ") + ", or remove resources.gpu.model"
	}
	return "it has no GPU", "remove resources.gpu, or choose a place with one"
}

func passPrice(_ *judge, c *Candidate) bool { return c.Price.Unpriced == nil }

func tellPrice(_ *judge, c *Candidate) (string, string) {
	return c.Price.Unpriced.Reason, c.Price.Unpriced.Help
}

func passMaxCost(j *judge, c *Candidate) bool {
	limit, hourly := j.Policy.MaxCostPerHour, c.Price.Hourly
	if hourly == nil {
		return c.Capabilities.SelfHosted() || c.Price.Unpriced != nil // nobody bills it, or another rule refuses it for that
	}
	return hourly.Currency == limit.Currency && hourly.Amount <= limit.Amount
}

func tellMaxCost(j *judge, c *Candidate) (string, string) {
	limit, hourly := j.Policy.MaxCostPerHour, c.Price.Hourly
	switch {
	case hourly == nil:
		return fmt.Sprintf("its hourly price is unknown, and the limit is %s", limit),
			"add a price book for " + c.Binding + " to the catalog, or drop max_cost_per_hour"
	case hourly.Currency != limit.Currency:
		return fmt.Sprintf("it costs %s per hour, which cannot be compared with the limit %s", hourly, limit),
			"state max_cost_per_hour in " + string(hourly.Currency)
	}
	return fmt.Sprintf("it costs %s per hour, and the limit is %s", hourly, limit),
		fmt.Sprintf("raise max_cost_per_hour to %s, or request less cpu and memory", hourly)
}

func noteMaxCost(j *judge, c *Candidate) {
	if c.Price.Hourly == nil {
		j.notice("the price of %s is unknown; no vendor bills for it, so max_cost_per_hour does not refuse it", c.ID())
	}
}
