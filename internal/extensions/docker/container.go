package docker

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// service is one container of a plan.
type service = types.ServiceConfig

//go:embed sh/*.sh
var shellFiles embed.FS

// scripts are the programs that run inside.
var scripts = &shtext.Files{FS: shellFiles}

// program returns one of them as it is sent.
func program(name string) string { return shtext.Join([]*shtext.Files{scripts}, name) }

//go:generate sh -c "cd ../../../tools && go run ./seccomp >../internal/extensions/docker/seccomp.json"

// seccomp is Docker's own default filter, of a version that refuses virtual sockets, which lead past every
// network to the hypervisor: github.com/moby/profiles/seccomp v0.2.4 (Apache-2.0). It lacks socketcall, whose
// arguments no filter sees.
//
//go:embed seccomp.json
var seccomp string

// create makes the container of one service. Only a container shows who its image's users are: one that would be root on
// the host is made again for another, and one for a name by the numbers that the name has now, since an engine would look
// it up again for each command, in a file that programs inside may have changed.
func (m *making) create(ctx context.Context, s service, name string, how func(service, string) client.ContainerCreateOptions) (
	id string, who owner, err error) {
	user := m.user(s)
	var groups []string
	for {
		o := how(s, user)
		o.HostConfig.GroupAdd = groups
		if id, err = m.createAs(ctx, o, name); err != nil {
			return id, who, err
		}
		was := user
		if who, err = m.engine.ownerIn(ctx, m.images[s.Image].id, id, user); err != nil {
			return id, who, err
		}
		switch {
		case who.uid == 0 && !m.rootAllowed(s) && m.options.user != "":
			return id, who, extensions.Errorf(extensions.KindUnsupported,
				"the user %q of the option user is root in the image %s, and so on the host", extensions.Clean(user, 80),
				extensions.Clean(s.Image, 200)).
				WithRemedy("set the option user to another user of the image, to uid:gid, or to root if that is meant")
		case who.uid == 0 && !m.rootAllowed(s):
			user, groups = defaultUser, nil
		case who.uid != 0 && who.named:
			user, groups = fmt.Sprintf("%d:%d", who.uid, who.gid), who.groups
		}
		if user == was {
			return id, who, nil
		}
		if err = m.engine.discard(ctx, id); err != nil {
			return id, who, err
		}
	}
}

// looped configures a container whose first process is our loop.
func (m *making) looped(s service, user string) client.ContainerCreateOptions {
	img := m.madeOf(s)
	o := m.base(s, img, user)
	cfg := o.Config
	cfg.Entrypoint = []string{"/bin/sh", "-c", program("watch"), "sandboxer", unixSeconds(m.plan.spec.Deadline), cfg.Labels[labelIdle]}
	if s.Name != extensions.AgentService {
		cfg.Cmd = img.commandLine(s.Command)
		return o
	}
	m.enter(cfg, img, s.Command)
	cfg.OpenStdin = len(m.plan.spec.Secrets) > 0
	cfg.StdinOnce = cfg.OpenStdin
	o.HostConfig.Tmpfs = m.memory(s)
	return o
}

// enter sets what runs in the agent beside our loop, if anything does. What the image starts with starts where the image
// says, and is looked after as it says.
func (m *making) enter(cfg *container.Config, img image, command []string) {
	point := m.plan.spec.Entrypoint
	if !point.Idle() {
		cfg.Labels[labelEntrypoint] = string(point.Mode)
	}
	if point.Mode == extensions.EntrypointImage {
		cfg.Cmd = img.commandLine(nil)
		return
	}
	cfg.WorkingDir = m.workdir()
	cfg.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}} // the image's own command does not run
	switch {
	case point.Mode == extensions.EntrypointArgv:
		cfg.Cmd = point.Argv
	case len(command) > 0:
		cfg.Cmd = img.commandLine(command)
	}
}

// shared configures the container of a service whose image has no shell.
func (m *making) shared(s service, user string) client.ContainerCreateOptions {
	o := m.base(s, m.madeOf(s), user)
	o.Config.Cmd = s.Command
	o.Config.Labels[labelShared] = "true"
	o.HostConfig.PidMode = container.PidMode("container:" + m.agentID)
	return o
}

func (m *making) base(s service, img image, user string) client.ContainerCreateOptions {
	pids := s.PidsLimit
	host := &container.HostConfig{
		CapDrop: []string{"ALL"}, CapAdd: m.options.capAdd, SecurityOpt: append([]string{"seccomp=" + seccomp}, s.SecurityOpt...),
		LogConfig: container.LogConfig{Type: s.Logging.Driver, Config: s.Logging.Options},
		Runtime:   m.runtime,
		Resources: container.Resources{Memory: int64(s.MemLimit), MemorySwap: int64(s.MemSwapLimit),
			NanoCPUs: int64(float64(s.CPUS)*1e3+0.5) * 1e6, PidsLimit: &pids},
	}
	for _, at := range slices.Sorted(maps.Keys(img.volumes)) { // filled from the copy, not from the image
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeVolume, Target: at, VolumeOptions: &mount.VolumeOptions{NoCopy: true}})
	}
	all := unlabeled()
	maps.Copy(all, m.labels(m.plan.spec, s.Name))
	all[labelImage] = img.label()
	if s.Name == extensions.AgentService {
		if all[labelIdle] = centis(m.plan.spec.IdleReap); all[labelIdle] != "" {
			host.CgroupnsMode = container.CgroupnsModePrivate // so that it sees its own CPU time
		}
		all[labelWorkDir], all[labelAccess] = m.workdir(), m.access
		if keys := m.builtKeys(); len(keys) > 0 {
			all[labelImages] = strings.Join(keys, " ")
		}
	}
	o := client.ContainerCreateOptions{HostConfig: host, Config: &container.Config{
		Image: m.imageRef(s), User: user, Env: pairs(s.Environment), Labels: all, StopSignal: "SIGKILL",
	}}
	m.connect(&o, s)
	return o
}

func (m *making) createAs(ctx context.Context, o client.ContainerCreateOptions, name string) (string, error) {
	o.Name = name
	r, err := m.engine.ContainerCreate(ctx, o)
	return r.ID, err
}

// connect puts a container where the sandbox's containers meet, and gives it all of their names. Its names' addresses
// are in its own file, so no resolver has to answer for them.
func (m *making) connect(o *client.ContainerCreateOptions, s service) {
	o.Config.Hostname = cmp.Or(s.Hostname, s.Name)
	for _, other := range append([]service{m.agent}, m.services...) {
		at, ok := m.addresses[other.Name]
		if !ok {
			at = loopback
		}
		for _, name := range namesOf(other) {
			o.HostConfig.ExtraHosts = append(o.HostConfig.ExtraHosts, name+":"+at.String())
		}
	}
	if m.denied() { // whoever asks for another name is refused, and asks nobody outside
		o.HostConfig.DNS, o.HostConfig.DNSOptions = []netip.Addr{loopback}, []string{"timeout:1", "attempts:1"}
	}
	if !m.networked() {
		o.HostConfig.NetworkMode = "none"
		return
	}
	at := string(m.plan.spec.ID) + nameNetwork
	o.HostConfig.NetworkMode = container.NetworkMode(at)
	o.NetworkingConfig = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
		at: {Aliases: namesOf(s), IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: m.addresses[s.Name]}}}}
}

var loopback = netip.MustParseAddr("127.0.0.1")

func namesOf(s service) []string {
	if s.Hostname == "" || s.Hostname == s.Name {
		return []string{s.Name}
	}
	return []string{s.Name, s.Hostname}
}

// user returns who is to run in a container: what the profile says, or the image's user, unless that is plainly
// root on the host.
func (m *making) user(s service) string {
	own := m.madeOf(s).user
	switch {
	case m.options.user != "":
		return m.options.user
	case !m.rootAllowed(s) && isRoot(own):
		return defaultUser
	}
	return own
}

// rootAllowed reports that the profile asked for root as such, or that root inside is nobody on the host. Root can write to
// a workspace that is read-only.
func (m *making) rootAllowed(s service) bool {
	asked := m.options.user != "" && isRoot(m.options.user)
	return asked || m.mapsRoot && (s.Name != extensions.AgentService || m.access != extensions.AccessRO)
}
