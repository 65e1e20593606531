package life

import (
	"context"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Pool is one place of a binding, as far as it is known.
type Pool struct {
	Binding catalog.Binding
	Place   extensions.Place
	// Host is the registered host; nil for an account, and for this machine without a name.
	Host *extensions.Host
	// Priority is the binding's and the host's together; higher is preferred.
	Priority int64
	// Live counts the sandboxes there, by the ledger; nil = it cannot be read. Max is the owner's limit; nil = none.
	Live, Max *int64
	// Lacks says which credentials are missing, Help how to set them; "" = none.
	Lacks, Help string
	// Given reports that credentials were given, if not all.
	Given bool
	// Facts are what the last probe found; nil = nothing is known.
	Facts *extensions.Facts
	// Asked reports that the place was asked now.
	Asked bool
	// Err is why the place did not answer now; nil = it did, or was not asked.
	Err error
}

// Works reports whether a sandbox can run there, as far as is known. Nothing is known of a place that was
// neither asked nor probed.
func (p Pool) Works() bool {
	return p.Lacks == "" && p.Err == nil && (p.Asked || p.Facts != nil) && (p.Facts == nil || len(p.Facts.Unfit) == 0)
}

// surveyTime is how long one place has to answer.
const surveyTime = 10 * time.Second

// Survey lists the places of every binding but test doubles, in the order of the catalog: this machine first,
// then the registered hosts. With ask, it asks all places with credentials side by side; else it shows the
// ledger's facts. It writes nothing. If the ledger cannot be read, it says so and lists the places without it.
func (m *Manager) Survey(ctx context.Context, ask bool) ([]Pool, error) {
	hosts, err := m.Hosts(ctx)
	live := m.liveAt(ctx)
	var pools []Pool
	for _, b := range m.catalog.Bindings {
		if b.Descriptor.NamedOnly {
			continue
		}
		if kind, ok := b.Descriptor.PlaceOf(nil); ok {
			pools = append(pools, m.pool(b, kind, nil, live))
		}
		before := len(pools)
		for _, h := range hosts {
			if kind, ok := b.Descriptor.PlaceOf(&h.Host); ok {
				pools = append(pools, m.pool(b, kind, &h.Host, live))
			}
		}
		if kind, ok := b.Descriptor.PlaceOf(nil); !ok && len(pools) == before {
			p := m.pool(b, kind, nil, live)
			p.Lacks, p.Help = "no host is registered for it", "register one with sandboxer_host"
			pools = append(pools, p)
		}
	}
	var asked sync.WaitGroup
	for i := range pools {
		p := &pools[i]
		at := place.Address{Binding: p.Binding.ID, Account: m.account, Host: refOf(p.Host)}
		p.Facts, _ = m.recordedFacts(ctx, at)
		if ask && p.Lacks == "" {
			asked.Go(func() { m.answers(ctx, p, at) })
		}
	}
	asked.Wait()
	return pools, err
}

func refOf(h *extensions.Host) string {
	if h == nil {
		return ""
	}
	return h.Ref()
}

func (m *Manager) pool(b catalog.Binding, kind extensions.Place, h *extensions.Host, live map[place.Address]int64) Pool {
	p := Pool{Binding: b, Place: kind, Host: h, Priority: b.Priority, Max: b.MaxSandboxes}
	if h != nil {
		p.Priority += h.Priority
		if h.Capacity != nil {
			p.Max = &h.Capacity.MaxSandboxes
		}
	}
	if live != nil {
		n := live[place.Address{Binding: b.ID, Host: nameOf(h)}]
		p.Live = &n
	}
	use, missing := m.places.CredentialsOf(b)
	p.Given = len(use) > 0
	if len(missing) > 0 {
		p.Lacks, p.Help = plan.CredentialsLacking(b.ID, b.Descriptor, missing)
	}
	return p
}

// liveAt counts the account's sandboxes by binding and host name; nil = the ledger cannot be read.
func (m *Manager) liveAt(ctx context.Context) map[place.Address]int64 {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil
	}
	rows, err := l.Occupancy(ctx, m.account)
	if err != nil {
		return nil
	}
	out := map[place.Address]int64{}
	for _, r := range rows {
		out[place.Address{Binding: r.Extension, Host: r.Host}] += r.Live
	}
	return out
}

// answers asks a place what it offers, or at least whether it serves us.
func (m *Manager) answers(ctx context.Context, p *Pool, at place.Address) {
	p.Asked = true
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	if p.Binding.Descriptor.Has(extensions.PowerProbe) {
		found := m.probe(ctx, at)
		if p.Err = found.err; found.facts != nil {
			p.Facts = found.facts
		}
		return
	}
	if p.Err = m.places.Ask(ctx, at); p.Err != nil && ctx.Err() != nil {
		p.Err = extensions.Errorf(extensions.KindUnreachable, "no answer within %s", surveyTime)
	}
}
