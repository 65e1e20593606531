package docker

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// subnetTries bounds how often a subnet that somebody else took first is replaced by another.
const subnetTries = 10

// reserved is how many addresses of a subnet no container gets: the first two and the last.
const reserved = 3

// makeNetwork creates the network where the sandbox's containers meet, with a subnet of ours: the engine's pools
// last for about thirty. Each container's address is known before the container is made, so that all have all names.
func (m *making) makeNetwork(ctx context.Context) error {
	o := client.NetworkCreateOptions{Driver: "bridge", Labels: m.labels(m.plan.spec, "")}
	if m.wired() {
		parent, err := m.makeWire(ctx)
		if err != nil {
			return err
		}
		o.Driver, o.Internal, o.Options = "macvlan", true, map[string]string{"parent": parent}
	}
	subnet, err := m.createNetwork(ctx, string(m.plan.spec.ID)+nameNetwork, 1+len(m.services), o)
	if err != nil {
		return err
	}
	m.addresses = map[string]netip.Addr{}
	next := subnet.Addr().Next()
	for _, s := range append([]service{m.agent}, m.services...) {
		next = next.Next()
		m.addresses[s.Name] = next
	}
	return nil
}

// createNetwork creates a network on a free subnet, of the configured size or as large as the containers need. An
// error of KindConflict says that one has the name already: engines since version 25 have no two.
func (b *Backend) createNetwork(ctx context.Context, name string, containers int, o client.NetworkCreateOptions) (netip.Prefix, error) {
	list, err := b.engine.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return netip.Prefix{}, err
	}
	b.sweepNetworks(ctx, list.Items)
	size := min(b.settings.subnetSize, 32-bits.Len(uint(containers+reserved-1)))
	var taken []netip.Prefix
	for _, n := range list.Items {
		for _, c := range n.IPAM.Config {
			taken = append(taken, c.Subnet)
		}
	}
	for try := 0; ; try++ {
		subnet, err := b.settings.freeSubnet(size, taken)
		if err != nil {
			return subnet, err
		}
		o.IPAM = &network.IPAM{Driver: "default", Config: []network.IPAMConfig{{Subnet: subnet}}}
		_, err = b.engine.NetworkCreate(ctx, name, o)
		if errdefs.IsConflict(err) {
			switch _, named := b.engine.NetworkInspect(ctx, name, client.NetworkInspectOptions{}); {
			case named == nil:
				return subnet, extensions.Errorf(extensions.KindConflict, "there is a network %s already", name)
			case !errdefs.IsNotFound(named):
				return subnet, named
			}
		}
		// An engine says in several ways that a subnet is in use, by another network or by a route.
		if err == nil || try == subnetTries || !errdefs.IsConflict(err) && !errdefs.IsPermissionDenied(err) && !errdefs.IsInternal(err) {
			return subnet, err
		}
		taken = append(taken, subnet)
	}
}

// freeSubnet returns a subnet of the ranges that overlaps none of taken, at random, so that creates at the same
// time rarely choose the same. Its prefix has size bits.
func (s settings) freeSubnet(size int, taken []netip.Prefix) (netip.Prefix, error) {
	var counts []int
	total := 0
	for _, r := range s.subnets {
		n := 0
		if size >= r.Bits() {
			n = 1 << (size - r.Bits())
		}
		counts = append(counts, n)
		total += n
	}
	start := rand.IntN(max(total, 1)) //nolint:gosec // where to begin looking
	for i := range total {
		n, r := (start+i)%total, 0
		for n >= counts[r] {
			n -= counts[r]
			r++
		}
		subnet := nth(s.subnets[r], size, n)
		if !overlaps(subnet, taken) {
			return subnet, nil
		}
	}
	return netip.Prefix{}, extensions.Errorf(extensions.KindExhausted, "all %d subnets /%d of config.subnets are in use", total, size).
		WithRemedy("destroy sandboxes, or give the binding a larger range in config.subnets")
}

func nth(r netip.Prefix, size, n int) netip.Prefix {
	four := r.Masked().Addr().As4()
	first := binary.BigEndian.Uint32(four[:])
	binary.BigEndian.PutUint32(four[:], first+uint32(n)<<(32-size))
	return netip.PrefixFrom(netip.AddrFrom4(four), size)
}

func overlaps(p netip.Prefix, taken []netip.Prefix) bool {
	for _, t := range taken {
		if t.IsValid() && t.Overlaps(p) {
			return true
		}
	}
	return false
}

// sweepNetworks removes what an engine made after the run that had asked for it was killed, and its sandbox was removed:
// networks of this account without a container, once no create can be under way there.
func (b *Backend) sweepNetworks(ctx context.Context, list []network.Summary) {
	old := map[extensions.ID]bool{}
	for _, n := range list {
		id, err := extensions.ParseID(n.Labels[extensions.LabelID])
		if err == nil && n.Labels[labelHandler] == Handler && n.Labels[extensions.LabelAccount] == b.settings.account &&
			ours(id, n.Name) && time.Since(n.Created) > unusedTime {
			old[id] = true
		}
	}
	if len(old) == 0 {
		return
	}
	all, err := b.find(ctx, having(extensions.LabelAccount+"="+b.settings.account))
	for id, o := range all {
		if err != nil || !old[id] || len(o.all()) > 0 {
			continue
		}
		if k, err := b.kept(ctx, string(id)); err == nil && k.none() {
			_ = b.removeNetworks(ctx, o.networks) // the next run tries again
		}
	}
}

// removeNetworks removes those of a sandbox without containers: what a network rests on goes first, so that none that is
// still being made there can be.
func (b *Backend) removeNetworks(ctx context.Context, list []network.Summary) error {
	rests := func(n network.Summary) int { return strings.Compare(n.Driver, "bridge") }
	for _, n := range slices.SortedFunc(slices.Values(list), func(a, b network.Summary) int { return rests(a) - rests(b) }) {
		if err := b.removeNetwork(ctx, n.ID); err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) removeNetwork(ctx context.Context, id string) error {
	_, err := b.engine.NetworkRemove(ctx, id, client.NetworkRemoveOptions{})
	switch {
	case err == nil || errdefs.IsNotFound(err):
		return nil
	case errdefs.IsPermissionDenied(err): // its word for a network in use
		return extensions.Errorf(extensions.KindUnavailable, "its network cannot be removed: %s", extensions.Clean(err.Error(), maxMessage)).
			WithRemedy("disconnect what others connected to it (docker network inspect); if there is nothing, the engine counts a container that " +
				"is gone: restart the engine, then destroy the sandbox again")
	}
	return fmt.Errorf("removing its network: %w", err)
}
