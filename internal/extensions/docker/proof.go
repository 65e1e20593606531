package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/netwall"
)

// Before the first closed network of an engine has a program of somebody else on it, it is tried with programs of ours:
// what engines and kernels promise and what they do differ. The containers of such a trial are the sandbox's own objects, so
// whoever ends an unfinished sandbox removes them, too.

const (
	proofVersion  = "1"
	proofLife     = time.Minute      // of a trial's containers, also if nobody ends them
	proofPatience = 20 * time.Second // until which a trial must have written what it found
	proofGateways = 20               // most of an engine's networks whose gateways are tried
	proofOutput   = 4 << 20          // most that is read of what a trial writes, in bytes: many times what it has to
)

// proveDeny tries the sandbox's network, unless this engine, with its kernel and runtime, has passed before.
func (m *making) proveDeny(ctx context.Context) error {
	info, err := m.engine.about(ctx)
	if err != nil {
		return err
	}
	m.engine.proofMu.Lock() // also while it tries: those who create at once have the same question
	defer m.engine.proofMu.Unlock()
	proof := strings.Join([]string{proofVersion, info.ServerVersion, info.KernelVersion, m.runtime}, "/")
	kept := netwall.ProofAt(m.settings.stateDir, strings.Join([]string{Handler, info.ID, info.DockerRootDir, m.runtime}, " "))
	if m.engine.proofs[m.runtime] == proof || kept.Read() == proof {
		return nil
	}
	m.step("trial")
	wrong, err := m.tryDeny(ctx)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return extensions.Errorf(extensions.KindUnsupported, "default deny does not hold between containers of this engine: %s",
			extensions.Clean(strings.Join(wrong[:min(len(wrong), 6)], "; "), maxMessage)).
			WithRemedy("leave the services out, set network.default to allow, or use another engine: one on Linux with macvlan")
	}
	m.engine.proofs[m.runtime] = proof
	kept.Keep(proof)
	return nil
}

// tryDeny returns what answered a container of ours on the sandbox's network, and removes what that took.
func (m *making) tryDeny(ctx context.Context) (wrong []string, err error) {
	addresses, err := m.besides(ctx)
	if err != nil {
		return nil, err
	}
	t := newTrial(m.addresses[m.services[0].Name], addresses)
	program, err := m.programFor(ctx, t.program)
	if err != nil {
		return nil, err
	}
	out, err := m.output(ctx, m.bare(m.agent, defaultUser, nameTrial), program)
	if err != nil {
		return nil, err
	}
	m.step("tried")
	left, err := m.look(ctx, m.plan.spec.ID)
	if err != nil {
		return nil, err
	}
	return t.judge(out), m.removeContainers(ctx, left)
}

// besides starts what is to be beside a trial: the keeper, a peer, and a neighbor on the engine's own bridge, if it has
// one. It returns the addresses that must not answer.
func (m *making) besides(ctx context.Context) ([]netip.Addr, error) {
	sleeps, err := m.programFor(ctx, sleeper(proofLife))
	if err != nil {
		return nil, err
	}
	list, err := m.engine.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return nil, err
	}
	const peer, near = nameTrial + "-peer", nameTrial + "-near"
	keeper, neighbor := m.bare(m.agent, keeperUser, nameKeeper), m.bare(m.agent, defaultUser, nameTrial)
	m.plugIn(&keeper)
	neighbor.NetworkingConfig, neighbor.HostConfig.NetworkMode = nil, "bridge"
	all := map[string]client.ContainerCreateOptions{nameKeeper: keeper, peer: m.bare(m.services[0], defaultUser, nameTrial)}
	addresses := []netip.Addr{m.addresses[m.agent.Name].Prev()} // where a gateway of its own network would be
	for _, n := range list.Items {
		if n.Name == "bridge" && n.Driver == "bridge" {
			all[near] = neighbor
		}
		for _, c := range n.IPAM.Config {
			if c.Gateway.Is4() && len(addresses) < proofGateways && n.Name != string(m.plan.spec.ID)+nameNetwork {
				addresses = append(addresses, c.Gateway)
			}
		}
	}
	var starts errgroup.Group
	for name, o := range all {
		starts.Go(func() error {
			id, err := m.plant(ctx, o, name, sleeps)
			if err == nil {
				err = m.start(ctx, id, m.agent.Image)
			}
			if err != nil || name != near {
				return err
			}
			r, err := m.engine.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
			if err != nil {
				return err
			}
			for _, n := range r.Container.NetworkSettings.Networks {
				if n.IPAddress.Is4() {
					addresses = append(addresses, n.IPAddress)
				}
			}
			return nil
		})
	}
	err = starts.Wait()
	return addresses, err
}

// output runs a program of ours and returns what it wrote.
func (m *making) output(ctx context.Context, o client.ContainerCreateOptions, program []byte) ([]byte, error) {
	o.Config.AttachStdout = true
	id, err := m.plant(ctx, o, nameTrial, program)
	if err != nil {
		return nil, err
	}
	conn, err := m.engine.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdout: true})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := m.start(ctx, id, m.agent.Image); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, conn.Close)
	defer stop()
	_ = conn.Conn.SetReadDeadline(time.Now().Add(proofPatience))
	var out, said bytes.Buffer
	if _, err = stdcopy.StdCopy(&out, &said, io.LimitReader(conn.Reader, proofOutput)); err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("trying its network: %w", ctx.Err())
	}
	return out.Bytes(), nil // what is missing is judged
}
