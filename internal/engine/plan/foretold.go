package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Foretold is a place's own estimate, beside ours. Amounts are decimal strings; "" is unknown.
type Foretold struct {
	Extension string
	Host      string // name; "" for an account
	Duration  string // how long it would run
	Currency  string
	Theirs    string            // at our prices, what the place says that it would use
	Ours      string            // the quote's Expected
	More      string            // Theirs - Ours, negative if less
	Usage     *extensions.Usage // as told; nil = nothing
	Why       string            // why nothing, or not all of it, was used; "" = all was
}

// Duration is how long a sandbox would probably run at a candidate.
func (d *Decision) Duration(c *route.Candidate) time.Duration {
	return meter.Duration(d.Evidence.Expected, d.Evidence.Past[c.Binding], d.TTL)
}

// Foretold compares a place's own estimate with ours; err says why the place gave none.
func (d *Decision) Foretold(c *route.Candidate, told extensions.Usage, err error) Foretold {
	q, runs := d.quotes[c.ID()], d.Duration(c)
	out := Foretold{Extension: c.Binding, Host: c.HostName(), Duration: profile.FormatDuration(runs.Round(time.Millisecond)),
		Currency: string(q.Currency), Ours: amount(q.Expected)}
	if err == nil && (told.Running < 0 || told.Paused < 0 || told.Running > max(runs, d.TTL)+c.Capabilities.DeadlineGrain) {
		err = extensions.Errorf(extensions.KindInternal, "it expects a run of %s, which is impossible within %s", told.Running, out.Duration)
	}
	if err != nil {
		out.Why = extensions.Clean(err.Error(), 300)
		return out
	}
	if told.Running > 0 {
		runs = told.Running
	}
	able, refused := q.Foreseeable(runs, meter.Measures{CPUMillis: told.CPUMillis, MemoryMiBMillis: told.MemoryMiBMillis,
		EgressBytes: told.EgressBytes})
	if len(refused) > 0 {
		out.Why = fmt.Sprintf("not believed: %s", strings.Join(refused, "; "))
	}
	told.CPUMillis, told.MemoryMiBMillis, told.EgressBytes = able.CPUMillis, able.MemoryMiBMillis, able.EgressBytes
	out.Usage = &told
	theirs, err := q.Foretell(runs, able)
	if err != nil {
		out.Why = err.Error()
		return out
	}
	out.Theirs = amount(theirs)
	if theirs != nil && q.Expected != nil {
		more := *theirs - *q.Expected // neither is negative
		out.More = more.String()
	}
	return out
}
