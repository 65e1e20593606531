package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Offer is one place that a create may try, with all that it needs to know of it.
type Offer struct {
	*route.Candidate
	Liability

	Spec    extensions.Spec // the request there, without an identity and streams
	Hash    string          // of what makes two requests there the same
	Quote   meter.Quote
	Carried bool // its snapshot is kept at another place
}

// offer fills in the places that may be tried, and what follows from them.
func (d *Decision) offer() {
	if d.Choice.Chosen == nil {
		return
	}
	for _, c := range append([]*route.Candidate{d.Choice.Chosen}, d.Choice.Fallbacks...) {
		d.Offers = append(d.Offers, d.offerAt(c))
	}
	d.Metered = slices.ContainsFunc(d.Offers, func(o *Offer) bool { return !o.Capabilities.SelfHosted() })
	d.Ceilings = Ceilings(d.cat, d.Evidence.Account, d.Metered)
}

func (d *Decision) offerAt(c *route.Candidate) *Offer {
	return &Offer{Candidate: c, Liability: d.liabilityAt(c), Spec: d.SpecOn(c), Hash: d.SpecAt(c.Binding).Hash(),
		Quote: d.quotes[c.ID()], Carried: d.carries(c)}
}

// liabilityAt returns the liability at a place that a request may get.
func (d *Decision) liabilityAt(c *route.Candidate) Liability {
	q := d.quotes[c.ID()]
	return Liability{prices: q.Snapshot, sizes: q.Sizes, grain: c.Capabilities.DeadlineGrain, selfHosted: c.Capabilities.SelfHosted(),
		bill: c.PaidAs(d.Request.Billing), quoted: &worstCase{q.Reserve, q.Wallet}, ttl: d.TTL}
}

// SpecOn returns the merged request for one place, without an identity and streams.
func (d *Decision) SpecOn(c *route.Candidate) extensions.Spec {
	s := d.SpecAt(c.Binding)
	s.Region = c.PlacedIn(d.Resolved.Policy.Region)
	if snap := d.Evidence.Snapshot; s.FromSnapshot != nil && snap != nil {
		s.FromSnapshot = &extensions.SnapshotRef{ID: snap.ID, Handle: snap.Handle}
	}
	if source := d.Evidence.Source; source != nil {
		s.Source = source.Handle
	}
	return s
}

// keeps returns the place of a snapshot. One that is whole, and of a kind that its place can send, also restores
// elsewhere.
func (d *Decision) keeps(s ledger.Snapshot) *route.Origin {
	o := &route.Origin{Binding: s.Extension, Host: cmp.Or(s.HostRef, s.Host), Arch: s.Arch}
	kind := extensions.SnapshotKind(s.Kind)
	b, err := d.cat.Named(s.Extension)
	if err == nil && s.State == ledger.SnapshotReady && s.Digest != "" && slices.Contains(b.Descriptor.Snapshots.Portable, kind) {
		o.Handler, o.Portable = b.Handler, kind
	}
	return o
}

func keeperOf(s ledger.Snapshot) string {
	if s.Host == "" {
		return s.Extension
	}
	return s.Extension + "@" + s.Host
}

// carries reports whether the snapshot that the sandbox starts from is kept at another place than c's.
func (d *Decision) carries(c *route.Candidate) bool {
	return d.Evidence.Snapshot != nil && d.query.Origin != nil && !d.query.Origin.Holds(c)
}

// noteOrigin tells what is special about what the sandbox starts from.
func (d *Decision) noteOrigin() {
	chosen := d.Choice.Chosen
	switch source := d.Evidence.Source; {
	case chosen == nil:
	case source != nil:
		d.noteFork(*source, chosen)
	case d.carries(chosen):
		s := d.Evidence.Snapshot
		d.Notices = append(d.Notices, notice.Notice{Summary: fmt.Sprintf("Snapshot %s is restored at another place", s.ID),
			Detail: fmt.Sprintf("%s keeps it, and the sandbox starts at %s. Its %d bytes pass through this machine, which checks their digest "+
				"before anything uses them.", keeperOf(*s), chosen.ID(), s.SizeBytes)})
	}
}

// noteFork tells of a source that has to run by the time of the fork, and of what comes with a fork although its
// source's secrets do not.
func (d *Decision) noteFork(source ledger.Sandbox, chosen *route.Candidate) {
	forks := d.cat.Bindings[chosen.Index].Descriptor.Forks
	if forks.RunningOnly && source.Mode == ledger.Paused {
		d.Notices = append(d.Notices, notice.Notice{Summary: "The fork's source is paused",
			Detail: chosen.ID() + " forks only running sandboxes: resume sandbox " + string(source.ID) + " first (desired_mode = \"running\", " +
				"or `sandboxer sandbox resume`)."})
	}
	var was extensions.Spec
	if !forks.HoldsSecrets || json.Unmarshal(source.Spec, &was) != nil || len(was.SecretNames) == 0 {
		return
	}
	d.Notices = append(d.Notices, notice.Notice{Summary: "The fork has its source's secrets in memory",
		Detail: "At " + chosen.ID() + " the processes of sandbox " + string(source.ID) + " continue in the fork, with their secrets (" +
			strings.Join(was.SecretNames, ", ") + ") in memory. New commands get the fork's own secrets."})
}
