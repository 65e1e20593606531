package life

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// factsAge is how long facts count; older ones are found out again before their place is used.
const factsAge = 24 * time.Hour

// probe is what probing a place found; facts is nil if the probe failed.
type probe struct {
	facts *extensions.Facts
	err   error
}

// recordedFacts returns what was last found at exactly this place; nil if nothing was. due says that the
// place should be probed before it is used: its facts are old, or it is a registered host or an account
// that nobody has probed yet.
func (m *Manager) recordedFacts(ctx context.Context, at place.Address) (facts *extensions.Facts, due bool) {
	b, err := m.catalog.Named(at.Binding)
	if err != nil || !b.Descriptor.Has(extensions.PowerProbe) {
		return nil, false
	}
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil, false // a create reports it when it writes
	}
	h := hostAt(at)
	row, err := l.Facts(ctx, at.Account, at.Binding, nameOf(h))
	switch {
	case err == nil && row.HostRef == at.Host && row.Config == configDigest(b):
		return &row.Found, m.book.Now().Sub(row.ProbedAt) >= factsAge
	case h == nil:
		return nil, b.Descriptor.RunsAt(extensions.PlaceAccount)
	}
	registered, err := l.Host(ctx, at.Account, h.Name)
	return nil, err == nil && registered.Ref == at.Host
}

// facts returns what is known about a place that is about to be changed, probed again if that is due.
func (m *Manager) facts(ctx context.Context, at place.Address) extensions.Facts {
	kept, due := m.recordedFacts(ctx, at)
	if due {
		if found := m.probeAgain(ctx, at); found.facts != nil {
			kept = found.facts
		}
	}
	if kept == nil {
		return extensions.Facts{}
	}
	return *kept
}

// probe asks a place what it offers and records nothing.
func (m *Manager) probe(ctx context.Context, at place.Address) probe {
	b, err := m.places.Open(ctx, at)
	if err != nil {
		return probe{err: err}
	}
	facts, err := b.Probe(ctx)
	if err != nil {
		return probe{err: err}
	}
	return probe{facts: &facts}
}

// probeAgainAfter is how long a Manager goes by its own last probe of a place, whatever came of it: many callers at
// once make one probe, and whoever repairs the place is soon believed.
const probeAgainAfter = time.Minute

// looked is the last probe of a place.
type looked struct {
	at    time.Time
	found probe
}

// probeAgain probes a place whose facts are missing or old, or left nothing to choose, since its owner may
// have repaired it. A failed probe leaves the recorded facts. A caller that leaves ends no probe.
func (m *Manager) probeAgain(ctx context.Context, at place.Address) probe {
	at.Identity = "" // a place is what it is to whoever asks
	key := strings.Join([]string{"probe", at.Binding, at.Account, at.Host}, "\x00")
	found, err := flight.Do(ctx, m.places.Flights, key, func(ctx context.Context) (probe, error) {
		if last, ok := m.looked.Load(at); ok && m.book.Now().Sub(last.(looked).at) < probeAgainAfter {
			return last.(looked).found, nil
		}
		found := m.probe(ctx, at)
		m.looked.Store(at, looked{m.book.Now(), found})
		if found.err != nil {
			m.log.Info("the place could not be probed", slog.String("extension", at.Binding), slog.String("host", nameOf(hostAt(at))),
				slog.Any("error", found.err))
			return found, nil
		}
		m.keepFacts(ctx, map[place.Address]extensions.Facts{at: *found.facts})
		return found, nil
	})
	if err != nil {
		return probe{err: extensions.Classify("probe", at.Binding, "", err)}
	}
	return found
}

// keepFacts records what probes found. Facts that cannot be recorded are found out at the next use.
func (m *Manager) keepFacts(ctx context.Context, found map[place.Address]extensions.Facts) {
	var all []ledger.Facts
	for at, facts := range found {
		b, err := m.catalog.Named(at.Binding)
		if err != nil {
			continue
		}
		all = append(all, ledger.Facts{Account: at.Account, Extension: at.Binding, Host: nameOf(hostAt(at)), HostRef: at.Host,
			Config: configDigest(b), Found: facts, ProbedAt: m.book.Now()})
	}
	slices.SortFunc(all, func(a, b ledger.Facts) int { return cmp.Compare(a.Extension, b.Extension) })
	l, err := m.book.Changer(ctx)
	if err == nil {
		err = l.PutFacts(ctx, all...)
	}
	if err != nil {
		m.log.Info("the facts of a probe could not be recorded", slog.Any("error", err))
	}
}

// probeHost probes every binding that runs on h, side by side, since what rules one out need not rule out
// another. The error is the first binding's, if no probe worked.
func (m *Manager) probeHost(ctx context.Context, h extensions.Host) (extensions.HostFacts, map[place.Address]extensions.Facts, error) {
	var at []place.Address
	for _, b := range m.catalog.Bindings {
		if _, runs := b.Descriptor.PlaceOf(&h); runs && b.Descriptor.Has(extensions.PowerProbe) && m.places.Configured(b) {
			at = append(at, place.Address{Binding: b.ID, Account: m.account, Host: h.Ref()})
		}
	}
	if len(at) == 0 {
		return extensions.HostFacts{}, nil, extensions.Errorf(extensions.KindUnsupported, "no extension in the catalog can use host %q", h.Name)
	}
	probes := probeAll(ctx, at, m.probe)
	found := map[place.Address]extensions.Facts{}
	var machines []extensions.HostFacts
	for i, p := range probes {
		if p.err != nil {
			m.log.Info("a binding could not probe the host", slog.String("extension", at[i].Binding), slog.String("host", h.Name),
				slog.Any("error", p.err))
			continue
		}
		found[at[i]] = *p.facts
		if p.facts.Machine != nil {
			machines = append(machines, *p.facts.Machine)
		}
	}
	if len(found) == 0 {
		return extensions.HostFacts{}, nil, probes[0].err
	}
	return together(machines), found, nil
}

// probeAll probes places side by side.
func probeAll(ctx context.Context, all []place.Address, one func(context.Context, place.Address) probe) []probe {
	out := make([]probe, len(all))
	var wg sync.WaitGroup
	for i, at := range all {
		wg.Go(func() { out[i] = one(ctx, at) })
	}
	wg.Wait()
	return out
}

// together describes one machine by what several bindings found there. It has what any of them can use.
func together(found []extensions.HostFacts) (all extensions.HostFacts) {
	for i, f := range found {
		if i == 0 {
			all = f
			continue
		}
		all.Docker, all.Compose = cmp.Or(all.Docker, f.Docker), cmp.Or(all.Compose, f.Compose)
		all.KVM, all.GPU = all.KVM || f.KVM, all.GPU || f.GPU
		all.Egress = strongest(extensions.EgressLevels, all.Egress, f.Egress)
		all.Expiry = strongest(extensions.ExpiryLevels, all.Expiry, f.Expiry)
		all.Isolation = either(extensions.IsolationLevels, all.Isolation, f.Isolation)
		all.SecretsAs = either(extensions.SecretDeliveries, all.SecretsAs, f.SecretsAs)
		for _, n := range f.Notes {
			if !slices.Contains(all.Notes, n) {
				all.Notes = append(slices.Clip(all.Notes), n)
			}
		}
		if len(f.Unfit) == 0 {
			all.Unfit = nil
		}
	}
	return all
}

func strongest[T comparable](levels []T, a, b T) T {
	if slices.Index(levels, b) > slices.Index(levels, a) {
		return b
	}
	return a
}

// either returns what a or b has, in the order of all.
func either[T comparable](all, a, b []T) (out []T) {
	for _, v := range all {
		if slices.Contains(a, v) || slices.Contains(b, v) {
			out = append(out, v)
		}
	}
	return out
}

// hostAt returns the host of a place; nil for an account, and for this machine without a name.
func hostAt(at place.Address) *extensions.Host {
	h, err := extensions.ParseHostRef(at.Host)
	if err != nil {
		return nil
	}
	return &h
}

func nameOf(h *extensions.Host) string {
	if h == nil {
		return ""
	}
	return h.Name
}

// configDigest tells configs of one binding apart: with another one it is another place.
func configDigest(b catalog.Binding) string {
	if len(b.Config) == 0 {
		return ""
	}
	sum := sha256.Sum256(mustJSON(b.Config))
	return hex.EncodeToString(sum[:16])
}
