package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
)

// latencySamples is of how many past sandboxes the median is taken.
const latencySamples = 20

// latency is how long a place takes from create to ready: the median of what
// was measured there, else the catalog's figure. Only a create looks at the
// past: a plan is a function of arguments and catalog.
func (e *Engine) latency(ctx context.Context, p *prepared, b catalog.Binding, c *route.Candidate, how preparation) route.Latency {
	dated := route.Latency{CreateToReady: b.CreateToReady}
	if !how.binding || p.resolved.Policy.Strategy != profile.StrategyLowestLatency {
		return dated
	}
	l, err := e.book.Reader(ctx)
	if err != nil {
		return dated
	}
	past, err := l.ReadyTimes(ctx, e.account, b.ID, c.HostName(), latencySamples)
	if err != nil {
		return dated
	}
	var took []time.Duration
	for _, r := range past {
		var recorded Route
		if json.Unmarshal(r.Route, &recorded) == nil && len(recorded.Attempts) == 1 { // else part of it was spent elsewhere
			took = append(took, r.Took)
		}
	}
	if len(took) == 0 {
		return dated
	}
	return route.Latency{CreateToReady: percentile(took, 50), Samples: len(took)}
}
