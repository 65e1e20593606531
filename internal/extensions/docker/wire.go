package docker

import (
	"archive/tar"
	"context"
	"encoding/binary"
	"fmt"
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
	info, err := m.engine.about(ctx)
	if err != nil {
		return err
	}
	waits, err := idleProgram(goArch(info.Architecture))
	if err != nil {
		return err
	}
	id, pids := string(m.plan.spec.ID), int64(keeperPids)
	o := m.base(m.agent, m.madeOf(m.agent), keeperUser)
	o.Config.Entrypoint, o.Config.Env, o.Config.Labels = []string{keeperPath}, nil, unlabeled()
	maps.Copy(o.Config.Labels, m.labels(m.plan.spec, ""))
	if m.madeOf(m.agent).named {
		o.Config.Image = reference(id, nameKeeper)
	}
	o.Config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	o.NetworkingConfig, o.HostConfig.ExtraHosts, o.HostConfig.CapAdd = nil, nil, nil
	o.HostConfig.NetworkMode = container.NetworkMode(id + nameWire)
	o.HostConfig.Sysctls, o.HostConfig.Runtime = keeperSysctls, ""
	o.HostConfig.Resources = container.Resources{Memory: keeperMemory, MemorySwap: keeperMemory, PidsLimit: &pids}
	if m.runtime == "" {
		o.HostConfig.PidMode = container.PidMode("container:" + m.agentID)
	}
	made, err := m.createAs(ctx, o, id+nameKeeper)
	if err != nil {
		return err
	}
	err = m.engine.copyIn(ctx, made, "/", func(w io.Writer) error {
		t := tar.NewWriter(w)
		name := strings.TrimPrefix(keeperPath, "/")
		// Who cannot read a program cannot debug it, whoever it runs as.
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o111, Size: int64(len(waits))}); err != nil {
			return err
		}
		if _, err := t.Write(waits); err != nil {
			return err
		}
		return t.Close()
	})
	if err != nil {
		return err
	}
	if _, err = m.engine.ContainerStart(ctx, made, client.ContainerStartOptions{}); err != nil && !lost(err) && ctx.Err() == nil {
		return extensions.Errorf(extensions.KindFailed, "the network of the services could not be kept up: %s",
			extensions.Clean(err.Error(), maxMessage))
	}
	return err
}

// idleProgram is a program that waits until it is ended, and needs nothing: instructions in the file format of Linux.
func idleProgram(arch string) ([]byte, error) {
	var code []byte
	var machine uint16
	switch arch {
	case "amd64": // again: eax = pause; syscall; jump again
		machine, code = 62, []byte{0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7}
	case "arm64": // again: ppoll(nothing, 0, no timeout, no mask); jump again
		machine = 183
		for _, word := range []uint32{0xd2800000, 0xd2800001, 0xd2800002, 0xd2800003, 0xd2800928, 0xd4000001, 0x17fffffa} {
			code = binary.LittleEndian.AppendUint32(code, word)
		}
	default:
		return nil, extensions.Errorf(extensions.KindUnsupported, "an engine on %s has no closed network for services",
			extensions.Clean(arch, 40)).
			WithRemedy("use an engine on amd64 or arm64, leave the services out, or set network.default to allow")
	}
	const base, header, segment = 0x10000, 64, 56
	at, size := uint64(base+header+segment), uint64(header+segment+len(code))
	out := []byte("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	for _, part := range []any{
		uint16(2), machine, uint32(1), at, uint64(header), uint64(0), uint32(0), // executable; its entry, its segments
		uint16(header), uint16(segment), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(base), // one segment to read and run
	} {
		var err error
		if out, err = binary.Append(out, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("the keeper's program: %w", err)
		}
	}
	return append(out, code...), nil
}
