package extensions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Validate checks that the descriptor agrees with itself; the conformance suite
// calls it. Errors are KindInternal: a bug of the adapter.
func (d Descriptor) Validate() error {
	bad := func(format string, args ...any) error {
		return Errorf(KindInternal, "descriptor of %q: %w", d.Handler, fmt.Errorf(format, args...))
	}
	c := d.Capabilities
	if err := d.checkWords(); err != nil {
		return bad("%w", err)
	}
	if err := checkPlaces(d.Places); err != nil {
		return bad("%w", err)
	}
	if len(c.IsolationLevels) == 0 || len(c.OS) == 0 || len(c.Arch) == 0 || len(c.Regions) == 0 {
		return bad("isolation levels, os, arch and regions each need at least one value")
	}
	if !slices.IsSortedFunc(c.IsolationLevels, func(a, b Isolation) int {
		return slices.Index(IsolationLevels, a) - slices.Index(IsolationLevels, b)
	}) || slices.ContainsFunc(c.IsolationLevels, func(l Isolation) bool { return !slices.Contains(IsolationLevels, l) }) {
		return bad("isolation levels %v are unknown or not weakest first", c.IsolationLevels)
	}
	if len(c.SecretsAs) == 0 || slices.ContainsFunc(c.SecretsAs,
		func(s SecretDelivery) bool { return !slices.Contains(SecretDeliveries, s) }) {
		return bad("deliveries of secrets %v: want at least one of %v", c.SecretsAs, SecretDeliveries)
	}
	if !slices.Contains(c.Entrypoints, EntrypointIdle) || slices.ContainsFunc(c.Entrypoints,
		func(m EntrypointMode) bool { return !slices.Contains(EntrypointModes, m) }) {
		return bad("entrypoints %v: want idle and some of %v", c.Entrypoints, EntrypointModes)
	}
	if err := d.checkCredentials(); err != nil {
		return bad("%w", err)
	}
	if err := errors.Join(d.checkFind(), d.checkSnapshots(), d.checkForks(), d.checkPauses()); err != nil {
		return bad("%w", err)
	}
	for _, p := range d.Powers {
		if !slices.Contains(Powers, p) {
			return bad("power %q is unknown", p)
		}
	}
	for _, pair := range []struct {
		flag  string
		set   bool
		power Power
	}{
		{"supportsFsSnapshot", c.FsSnapshot, PowerSnapshot},
		{"supportsPauseResume", c.PauseResume, PowerPause},
		{"supportsCapacityQuery", c.CapacityQuery, PowerCapacity},
		{"extend_ttl", c.ExtendTTL != ExtendNone, PowerExtend},
	} {
		if pair.set && !d.Has(pair.power) {
			return bad("%s is declared without the power %q", pair.flag, pair.power)
		}
	}
	if c.PauseResume != d.Has(PowerPause) || c.CapacityQuery != d.Has(PowerCapacity) || (c.ExtendTTL != ExtendNone) != d.Has(PowerExtend) {
		return bad("pause, capacity and extend: flag and power must agree")
	}
	if err := c.checkEgressFacts(); err != nil {
		return bad("%w", err)
	}
	return nil
}

// checkWords wants what every descriptor says in one word, and a known one.
func (d Descriptor) checkWords() error {
	c := d.Capabilities
	for _, e := range []struct {
		name, value string
		allowed     []string // nil = any
	}{
		{"handler", d.Handler, nil}, {"title", d.Title, nil}, {"doc", d.Doc, nil},
		{"transportModel", c.TransportModel, []string{TransportDialIn, TransportDialOut, TransportEither}},
		{"idleCostModel", c.IdleCostModel, []string{IdleZero, IdleStorageOnly, IdleMetered}},
		{"billingModel", c.BillingModel, []string{BillingFixed, BillingWallClock, BillingActiveCPU, BillingInvocation}},
		{"egressDefault", c.EgressDefault, []string{NetworkAllow, NetworkDeny}},
		{"pricing_model", c.PricingModel, []string{PricingSelfHosted, PricingMetered}},
		{"egress", string(c.Egress), words(EgressLevels)},
		{"dns", string(c.DNS), words(DNSLevels)},
		{"ingress", string(c.Ingress), words(IngressLevels)},
		{"extend_ttl", string(c.ExtendTTL), words(Extends)},
		{"idle_reap", string(c.IdleReap), words(IdleReaps)},
		{"expiry", string(c.Expiry), words(ExpiryLevels)},
		{"find", string(d.Find.Strength), words([]FindStrength{FindStrong, FindEventual, FindNone})},
		{"list", string(d.List.Freshness), words([]ListFreshness{ListStrong, ListEventual})},
	} {
		if e.value == "" {
			return fmt.Errorf("%s is not declared", e.name)
		}
		if e.allowed != nil && !slices.Contains(e.allowed, e.value) {
			return fmt.Errorf("%s %q is not one of %s", e.name, e.value, strings.Join(e.allowed, ", "))
		}
	}
	return nil
}

func words[S ~string](values []S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// checkEgressFacts wants ports for the rules that the level has and for no others.
func (c Capabilities) checkEgressFacts() error {
	for _, p := range []struct {
		field string
		level Egress
		ports EgressPorts
	}{{"ports of allowed networks", EgressCIDR, c.CIDRPorts}, {"ports of allowed names", EgressDomainOnly, c.DomainPorts}} {
		if c.Egress.Includes(p.level) != slices.Contains(EgressPortSets, p.ports) {
			return fmt.Errorf("egress %q and the %s %q disagree", c.Egress, p.field, p.ports)
		}
	}
	if c.CustomNetworkPolicy != c.allowlists() {
		return fmt.Errorf("supportsCustomNetworkPolicy and egress %q disagree", c.Egress)
	}
	return nil
}

func (d Descriptor) checkFind() error {
	if (d.List.Freshness == ListEventual) != (d.List.Lag > 0) {
		return errors.New("a lag belongs to an eventual list and to nothing else")
	}
	eventual := d.Find.Strength == FindEventual
	if eventual != (d.Find.Settle > 0) {
		return errors.New("a settle time belongs to eventual find and to nothing else")
	}
	if claim := d.Find.Claim; claim < 0 || claim > 0 && !(eventual && d.Has(PowerExtend) && d.Capabilities.Expiry == ExpiryNative) {
		return errors.New("a claim needs eventual find, native expiry and the power to extend")
	}
	return nil
}

func (d Descriptor) checkSnapshots() error {
	s := d.Snapshots
	known := func(k SnapshotKind) bool { return slices.Contains(SnapshotKinds, k) }
	switch {
	case d.Has(PowerSnapshot) != (len(s.Kinds) > 0):
		return errors.New("kinds of snapshots belong to the power to take them")
	case d.Has(PowerReadSnapshot) != (len(s.Portable) > 0):
		return errors.New("portable kinds of snapshots belong to the power to read them")
	case len(s.Kinds) == 0 && len(s.Portable) == 0:
		return nil
	case slices.ContainsFunc(s.Kinds, func(k SnapshotKind) bool { return !known(k) }):
		return fmt.Errorf("kinds of snapshots %v: want some of %v", s.Kinds, SnapshotKinds)
	case !slices.Contains([]FindStrength{FindStrong, FindEventual, FindNone}, s.Find.Strength):
		return fmt.Errorf("find of snapshots %q is unknown", s.Find.Strength)
	case (s.Find.Strength == FindEventual) != (s.Find.Settle > 0) || s.Find.Claim != 0:
		return errors.New("find of snapshots: a settle time belongs to eventual find, and a claim to none")
	case s.StopsSource && !d.Has(PowerPause):
		return errors.New("snapshots that stop their source need the power to pause, which resumes it")
	case s.StopsSource && s.EndsSource:
		return errors.New("snapshots stop their source or end it")
	case s.Expires < 0:
		return fmt.Errorf("snapshots expire after %s", s.Expires)
	case slices.Contains(s.Kinds, SnapshotMemory) && !s.HoldsSecrets:
		return errors.New("a snapshot of memory holds secrets")
	case slices.ContainsFunc(s.Portable, func(k SnapshotKind) bool { return k == SnapshotMemory || !slices.Contains(s.Kinds, k) }):
		return fmt.Errorf("portable kinds of snapshots %v: want some of %v, never memory", s.Portable, s.Kinds)
	}
	return nil
}

func (d Descriptor) checkForks() error {
	switch {
	case d.Forks != Forks{} && !d.Has(PowerFork):
		return errors.New("what is said of forks belongs to the power to make them")
	case d.Forks.RunningOnly && !d.Has(PowerPause):
		return errors.New("forks of running sandboxes only: no sandbox is ever paused there")
	}
	return nil
}

func (d Descriptor) checkPauses() error {
	c := d.Capabilities
	at := func(x Expiry) int { return slices.Index(ExpiryLevels, x) }
	switch {
	case d.Pauses != Pauses{} && !d.Has(PowerPause):
		return errors.New("what is said of pauses belongs to the power to pause")
	case c.PauseResume != (c.PausedExpiry != ""):
		return errors.New("who ends a paused sandbox belongs to the power to pause")
	case c.PauseResume && (at(c.PausedExpiry) < 0 || at(c.PausedExpiry) > at(c.Expiry)):
		return fmt.Errorf("expiry %q of a paused sandbox is not one of %v up to %q", c.PausedExpiry, ExpiryLevels, c.Expiry)
	}
	return nil
}

// checkPlaces wants at least one place, each known and once, in order, and an
// account alone.
func checkPlaces(places []Place) error {
	at := func(p Place) int { return slices.Index(Places, p) }
	switch {
	case len(places) == 0:
		return errors.New("no place is declared")
	case slices.ContainsFunc(places, func(p Place) bool { return at(p) < 0 }):
		return fmt.Errorf("places %v: want some of %v", places, Places)
	case !slices.IsSortedFunc(places, func(a, b Place) int { return at(a) - at(b) }),
		len(slices.Compact(slices.Clone(places))) < len(places):
		return fmt.Errorf("places %v are not each listed once, in the order %v", places, Places)
	case len(places) > 1 && slices.Contains(places, PlaceAccount):
		return fmt.Errorf("places %v: an account stands alone", places)
	}
	return nil
}
