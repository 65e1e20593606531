package failpointtest

import (
	"slices"
	"strings"
)

// points lists every point that the program passes, in order. Passing an unlisted point stops the test.
var points = []string{
	"engine.create.prepared", "engine.create.begun", "engine.create.placed", "engine.create.provisioned", "engine.create.handle",
	"engine.create.ready", "engine.create.confirmed",
	"engine.destroy.begun", "engine.destroy.torn", "engine.destroy.confirmed",
	"engine.snapshot.begun", "engine.snapshot.made", "engine.snapshot.confirmed",
	"engine.unkeep.begun", "engine.unkeep.gone", "engine.unkeep.confirmed",
	"engine.extend.begun", "engine.extend.moved", "engine.mode.begun", "engine.mode.set", "engine.mode.confirmed", "engine.note.written",
	"export.attempted", "export.sent", "export.marked",
	"ledger.begin", "ledger.price", "ledger.quote", "ledger.sandbox", "ledger.snapshot", "ledger.host", "ledger.facts", "ledger.lease",
	"ledger.intent.finish", "ledger.intent.open", "ledger.meter.close", "ledger.meter.segment.close", "ledger.charge",
	"ledger.meter.open", "ledger.meter.segment.open", "ledger.account", "ledger.budget", "ledger.transfer", "ledger.event", "ledger.stream",
	"ledger.commit", "ledger.committed",
	"outbox.sink", "outbox.hold", "outbox.release", "outbox.move",
}

// Names lists every point with the prefix, sorted.
func Names(prefix string) []string {
	var out []string
	for _, n := range points {
		if strings.HasPrefix(n, prefix) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}
