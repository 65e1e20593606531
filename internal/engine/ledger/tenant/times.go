package tenant

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// skew is how far a client's clock may be off without being corrected.
const skew = 10 * time.Second

// sourceOwner marks a time that the owner's clock had to bound.
const sourceOwner = "server"

// moment is about now, by the owner's clock.
func (v *view) moment(at time.Time) time.Time {
	now := v.now()
	if at.IsZero() || at.Before(now.Add(-skew)) || at.After(now) {
		return now
	}
	return at
}

func notAfter(at, latest time.Time) time.Time {
	if at.After(latest) {
		return latest
	}
	return at
}

// clamp bounds a time that an event is told for. A zero one is now.
func clamp(at, earliest, latest time.Time) (_ time.Time, moved bool) {
	switch {
	case at.IsZero() || at.After(latest):
		return latest, at.After(latest.Add(skew))
	case at.Before(earliest):
		return earliest, true
	}
	return at, false
}

// boundBegin puts a begin where the owner's clock is. The end keeps its
// distance: it is what is set aside for.
func (v *view) boundBegin(b *ledger.Begin) {
	b.CreatedAt = v.moment(b.CreatedAt)
	if b.TTL > 0 {
		b.ExpiresAt = b.CreatedAt.Add(b.TTL)
	}
}

// boundPatch bounds what a patch says has happened.
func (v *view) boundPatch(row ledger.Sandbox, p *ledger.Patch) {
	now := v.now()
	for _, at := range []**time.Time{&p.ReadyAt, &p.SeenAliveAt, &p.EndedAt} {
		if *at == nil || (*at).IsZero() {
			continue
		}
		bounded, _ := clamp(**at, row.CreatedAt, now)
		*at = &bounded
	}
}

// boundEnd puts the end of a new life where the owner's clock is, like that of
// a begin.
func (v *view) boundEnd(c *ledger.Change) {
	if !c.NextGeneration || c.Patch.ExpiresAt == nil || c.Patch.TTL == nil || *c.Patch.TTL <= 0 {
		return
	}
	if end := v.now().Add(*c.Patch.TTL); end.Sub(*c.Patch.ExpiresAt).Abs() > skew {
		c.Patch.ExpiresAt = &end
	}
}

// lastSeen is the latest step that shows it alive, from where on it may have
// ended.
func lastSeen(row ledger.Sandbox, m ledger.Meter) time.Time {
	at := m.Segments[len(m.Segments)-1].StartedAt
	for _, other := range []time.Time{row.ReadyAt, row.SeenAliveAt} {
		if other.After(at) {
			at = other
		}
	}
	return at
}

// boundMeter bounds the times of what a change does to a meter, and what was
// measured to what a life of that length can have used.
func (v *view) boundMeter(row ledger.Sandbox, m *ledger.Meter, c *ledger.Change) {
	now := v.now()
	var moved bool
	if o := c.Meter.Open; o != nil {
		if o.At, moved = clamp(o.At, row.CreatedAt, now); moved {
			o.Source = sourceOwner
		}
	}
	if m == nil {
		return
	}
	if s := c.Meter.Switch; s != nil {
		s.At, _ = clamp(s.At, lastSeen(row, *m), now)
		s.Sizes = m.Segments[len(m.Segments)-1].Sizes
	}
	if e := c.Meter.Close; e != nil {
		if e.At, moved = clamp(e.At, lastSeen(row, *m), now); moved {
			e.Source = sourceOwner
			if c.Patch.EndedAt != nil {
				c.Patch.EndedAt = &e.At
			}
		}
		e.Usage = possible(e.Usage, *m, e.At)
	}
}

// possible leaves out what cannot have been used: it is bounded from above then.
func possible(u *extensions.Usage, m ledger.Meter, end time.Time) *extensions.Usage {
	if u == nil {
		return nil
	}
	out := *u
	var cpu, memory int64
	for _, s := range m.Segments {
		if s.EndedAt.IsZero() {
			s.EndedAt = end
		}
		ms := s.EndedAt.UnixMilli() - s.StartedAt.UnixMilli() + 1
		cpu += s.Sizes["milli_vcpu"] / 1000 * ms // whole ones first: no product of both overflows
		cpu += s.Sizes["milli_vcpu"] % 1000 * ms / 1000
		memory += s.Sizes["memory_mib"] * ms
	}
	if cpu > 0 && out.CPUMillis != nil && *out.CPUMillis > cpu {
		out.CPUMillis = nil
	}
	if memory > 0 && out.MemoryMiBMillis != nil && *out.MemoryMiBMillis > memory {
		out.MemoryMiBMillis = nil
	}
	return &out
}
