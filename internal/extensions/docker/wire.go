package docker

import (
	"archive/tar"
	"context"
	"io"
	"maps"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Where the containers of a sandbox meet and nothing leaves, each has a macvlan on a bridge without an address. The
// kernel passes frames between macvlans of one bridge, and hands none from there to the host, not even at the bridge's
// own address. A bridge has a carrier while something is plugged into it: a container, the keeper, whose frames would reach the
// host. So no code of an image runs in it, but a few instructions of ours that wait.

const (
	keeperPath   = ownDir + "/keep"
	keeperUser   = "65533:65533"
	keeperMemory = 64 << 20 // bytes: what a runtime needs to start a process
	keeperPids   = 64
)

// keeperSysctls make the keeper's kernel side deaf: it forwards nothing, and tells nobody its address.
var keeperSysctls = map[string]string{"net.ipv4.ip_forward": "0", "net.ipv4.conf.all.arp_ignore": "8"}

// makeWire creates the bridge, and returns its interface.
func (m *making) makeWire(ctx context.Context) (parent string, err error) {
	id := string(m.plan.spec.ID)
	parent = "sbx" + id[len(id)-12:] // of the 15 letters that an interface has
	_, err = m.createNetwork(ctx, id+nameWire, 1, client.NetworkCreateOptions{Driver: "bridge", Internal: true,
		Labels: m.labels(m.plan.spec, ""), Options: map[string]string{"com.docker.network.bridge.inhibit_ipv4": "true",
			"com.docker.network.bridge.name": parent}})
	return parent, err
}

// makeKeeper plugs the keeper into the bridge. It is in the agent's process namespace, and so ends with it; a runtime of
// another kind than the engine's own cannot share one.
func (m *making) makeKeeper(ctx context.Context) error {
	waits, err := m.programFor(ctx, idleProgram)
	if err != nil {
		return err
	}
	o := m.bare(m.agent, keeperUser, nameKeeper)
	m.plugIn(&o)
	if m.runtime == "" {
		o.HostConfig.PidMode = container.PidMode("container:" + m.agentID)
	}
	made, err := m.plant(ctx, o, nameKeeper, waits)
	if err != nil {
		return err
	}
	if _, err = m.engine.ContainerStart(ctx, made, client.ContainerStartOptions{}); err != nil && !lost(err) && ctx.Err() == nil {
		return extensions.Errorf(extensions.KindFailed, "the network of the services could not be kept up: %s",
			extensions.Clean(err.Error(), maxMessage))
	}
	return err
}

// plugIn puts a bare container on the wire.
func (m *making) plugIn(o *client.ContainerCreateOptions) {
	o.NetworkingConfig, o.HostConfig.NetworkMode = nil, container.NetworkMode(string(m.plan.spec.ID)+nameWire)
	o.HostConfig.Sysctls, o.HostConfig.Runtime = keeperSysctls, ""
}

// bare configures a container for a program of ours, of the agent's image, where the containers of the sandbox meet. tag is
// the claim that it is made by.
func (m *making) bare(s service, user, tag string) client.ContainerCreateOptions {
	pids := int64(keeperPids)
	img := m.madeOf(m.agent)
	o := m.base(s, img, user)
	o.Config.Entrypoint, o.Config.Env, o.Config.Labels = []string{keeperPath}, nil, unlabeled()
	maps.Copy(o.Config.Labels, m.labels(m.plan.spec, ""))
	if o.Config.Image = img.id; img.named {
		o.Config.Image = reference(string(m.plan.spec.ID), tag)
	}
	o.Config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	o.HostConfig.ExtraHosts, o.HostConfig.CapAdd = nil, nil
	o.HostConfig.Resources = container.Resources{Memory: keeperMemory, MemorySwap: keeperMemory, PidsLimit: &pids}
	return o
}

// programFor writes a program for the engine's architecture.
func (m *making) programFor(ctx context.Context, write func(arch string) ([]byte, error)) ([]byte, error) {
	info, err := m.engine.about(ctx)
	if err != nil {
		return nil, err
	}
	return write(goArch(info.Architecture))
}

// plant makes a bare container with its program. Who cannot read a program cannot debug it, whoever it runs as.
func (m *making) plant(ctx context.Context, o client.ContainerCreateOptions, name string, program []byte) (string, error) {
	made, err := m.createAs(ctx, o, string(m.plan.spec.ID)+name)
	if err != nil {
		return made, err
	}
	return made, m.engine.copyIn(ctx, made, "/", func(w io.Writer) error {
		t := tar.NewWriter(w)
		at := strings.TrimPrefix(keeperPath, "/")
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: at, Mode: 0o111, Size: int64(len(program))}); err != nil {
			return err
		}
		if _, err := t.Write(program); err != nil {
			return err
		}
		return t.Close()
	})
}
