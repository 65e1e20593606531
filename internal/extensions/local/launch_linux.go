package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/initd"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/stage"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/walls"
)

// How a sandbox is walled.
const (
	modeNamespaces = "namespaces"
	modeBubblewrap = "bubblewrap"
	modeNone       = "none"
)

// errDirect is why a sandbox in direct mode has no walls.
var errDirect = errors.New("the request is for none")

// launch starts the sandbox's init with the strongest walls that this machine and the configuration allow,
// and records it before letting it go.
func (b *Backend) launch(ctx context.Context, bx box, rec *record, spec extensions.Spec) error {
	if spec.Direct {
		return b.launchPlain(ctx, bx, rec, spec, errDirect)
	}
	if err := checkKernel(); err != nil {
		return b.launchPlain(ctx, bx, rec, spec, err)
	}
	l := &launch{b: b, bx: bx, rec: rec, spec: spec}
	var err error
	if b.settings.launcher != launcherBubblewrap {
		err = l.try(ctx, modeNamespaces)
		if !closed(err) {
			return b.orPlain(ctx, bx, rec, spec, err)
		}
		err = namespacesClosed(err)
	}
	if b.settings.launcher != launcherNamespaces {
		bwrap, lookErr := findBubblewrap()
		if lookErr == nil {
			if err2 := l.try(ctx, modeBubblewrap); !closed(err2) {
				return b.orPlain(ctx, bx, rec, spec, err2)
			} else if err == nil {
				err = bubblewrapClosed(bwrap, err2)
			}
		} else if err == nil {
			err = lookErr
		}
	}
	return b.launchPlain(ctx, bx, rec, spec, err)
}

// orPlain continues without walls if the profile does not need what err refuses.
func (b *Backend) orPlain(ctx context.Context, bx box, rec *record, spec extensions.Spec, err error) error {
	if extensions.IsKind(err, extensions.KindUnsupported) {
		return b.launchPlain(ctx, bx, rec, spec, err)
	}
	return err
}

// checkKernel refuses kernels without the calls that the walls need.
func checkKernel() error {
	attr := unix.MountAttr{}
	err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &attr)
	if errors.Is(err, unix.ENOSYS) {
		return extensions.Errorf(extensions.KindUnsupported, "this kernel is too old to isolate a sandbox: mount_setattr(2) is missing").
			WithRemedy("use Linux 5.14 or newer, or isolation: {level: none} for code you trust")
	}
	err = errors.ErrUnsupported // 32-bit processors have more calls, which the list does not name
	if runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64" {
		_, err = filter(filterOptions{})
	}
	if err != nil {
		return extensions.Errorf(extensions.KindUnsupported, "no system call filter for this processor (%s): %w", runtime.GOARCH, err).
			WithRemedy("use amd64 or arm64, or isolation: {level: none} for code you trust")
	}
	return nil
}

// launch is one attempt to start an init.
type launch struct {
	b    *Backend
	bx   box
	rec  *record
	spec extensions.Spec

	walls  walls.Config
	inside initd.Config
	filter filterOptions
	groups cgroups
	uid    int      // host uid
	hold   *os.File // holds the host uid; nil for an ordinary user
}

func (l *launch) try(ctx context.Context, mode string) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.undo())
		}
	}()
	l.rec.Mode = mode
	defer func() { l.groups.close() }()
	if err := l.plan(mode); err != nil {
		return err
	}
	l.uid = os.Getuid()
	if l.uid == 0 {
		if l.uid, l.hold, err = l.b.settings.holdUID(l.spec.ID); err != nil {
			return err
		}
		defer func() { _ = l.hold.Close() }()
	}
	return l.start(ctx, mode)
}

// undo removes what a failed attempt made, so that another way can be tried.
func (l *launch) undo() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	err := errors.Join(l.rec.Keeper.kill(ctx), l.rec.Init.kill(ctx))
	err = errors.Join(err, removeCgroups(l.rec.Cgroups), removeAll(l.bx.path(socketName), l.bx.beside(endSuffix)))
	if err == nil {
		l.rec.Init, l.rec.Keeper, l.rec.Cgroups, l.rec.Mode = nil, nil, nil, ""
	}
	return err
}

// plan decides views and limits, and creates the cgroups after recording them.
func (l *launch) plan(mode string) error {
	want, err := planLimits(l.spec.Resources)
	if err != nil {
		return err
	}
	hostNetwork := l.spec.Network.Default == "allow"
	hostname := strings.TrimPrefix(string(l.spec.ID), "sbx-")
	l.walls = walls.Config{Built: mode == modeBubblewrap, Hostname: hostname, OwnNet: !hostNetwork, Access: access(l.spec)}
	l.walls.Views, l.walls.Links = l.b.settings.views()
	l.walls.Files = etcFiles(hostname, hostNetwork)
	if l.walls.Built && l.walls.Access == extensions.AccessRO {
		return extensions.Errorf(extensions.KindUnsupported, "bubblewrap cannot make a workspace read-only").
			WithRemedy("allow ordinary users to create user namespaces, or set workspace.access: rw")
	}
	l.groups = planCgroups(string(l.spec.ID))
	l.rec.Cgroups = l.groups.paths()
	if err := l.bx.write(*l.rec); err != nil {
		return err
	}
	failpoint("planned", l.bx.dir)
	l.groups.create(want.bounds())
	if l.rec.Unenforced, l.filter, err = want.enforced(l.groups, l.spec.ID, &l.walls); err != nil {
		return err
	}
	if l.walls.Filter, err = filter(l.filter); err != nil {
		return err
	}
	l.inside = initConfig(l.spec, walls.Home, standardPath)
	if l.spec.Delivery() == extensions.SecretsFile {
		l.inside.Secrets = map[string]string{}
		for name, s := range l.spec.Secrets {
			l.inside.Secrets[name] = s.Reveal()
		}
	}
	l.inside.Walls, l.inside.Access, l.inside.Pids, l.inside.Memory = true, l.walls.Access, want.pids, want.memory
	if l.walls.Access != extensions.AccessNone {
		l.inside.Workspace = walls.Workspace
		l.inside.Seed = fmt.Sprintf("/proc/self/fd/%d", stage.FDSeed)
		if l.walls.Built {
			l.inside.Seed = walls.Workspace
		}
	}
	if l.filter.noMemory || l.spec.Resources.MemoryMB != nil {
		l.inside.WatchMemory = want.memory
	}
	l.inside.Counted, l.rec.Memory = !l.filter.noMemory, l.groups.memoryBy()
	return nil
}

// start runs the stages and commits the init once it is recorded.
func (l *launch) start(ctx context.Context, mode string) error {
	p, err := newPipes(l.bx)
	if err != nil {
		return err
	}
	defer p.close()
	exe, err := ownExecutable(mode)
	if err != nil {
		return extensions.Errorf(extensions.KindUnsupported, "sandboxer cannot copy itself into sealed memory: %w", err)
	}
	l.walls.Exe = exe.path
	files := p.files(exe.file, l.hold, l.groups.memory)
	var pid int
	if mode == modeBubblewrap {
		pid, err = l.startBubblewrap(ctx, files)
	} else {
		pid, err = l.startNamespaces(files)
	}
	p.closeTheirs()
	if err != nil {
		return err
	}
	if l.rec.Init, err = identify(pid); err != nil {
		return p.reason(ctx, err)
	}
	failpoint("started", l.bx.dir)
	if err := l.place(pid); err != nil {
		return err
	}
	if err := l.keep(exe.file); err != nil {
		return err
	}
	l.rec.StartedAt = time.Now().UTC()
	if err := l.bx.write(*l.rec); err != nil {
		return err
	}
	failpoint("registered", l.bx.dir)
	return p.hand(ctx, l.walls, l.inside)
}

// likelyCgroups returns the cgroups of a sandbox without a record, as they would be created now.
func likelyCgroups(id extensions.ID) []string { return planCgroups(string(id)).paths() }

// place moves the init into its cgroups. If that is refused although the folders could be created, none of
// their limits holds, and memory is counted.
func (l *launch) place(pid int) error {
	err := l.groups.place(pid)
	if err == nil {
		return nil
	}
	r := l.spec.Resources
	if r.BestEffort || r.CPU == nil && r.MemoryMB == nil {
		l.rec.Unenforced = append(l.rec.Unenforced, "cgroups: "+err.Error())
		l.rec.Memory, l.inside.Counted, l.inside.WatchMemory, l.filter.noMemory = memoryByCounting, false, l.inside.Memory, true
		l.walls.Filter, err = filter(l.filter)
		return err
	}
	return extensions.Errorf(extensions.KindUnsupported, "the sandbox cannot be moved into its cgroups: %w", err).
		WithRemedy("run as root or in a delegated cgroup, drop the limits, or set resources.best_effort: true")
}

// ambient are the capabilities that building the walls takes, within the new namespaces only; the walls drop
// them.
var ambient = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_CHROOT, unix.CAP_DAC_OVERRIDE}

func (l *launch) startNamespaces(files []*os.File) (int, error) {
	sys := &syscall.SysProcAttr{
		Setsid:      true,
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: walls.UID, HostID: l.uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: walls.GID, HostID: l.gid(), Size: 1}},
		AmbientCaps: ambient,
	}
	if l.walls.OwnNet {
		sys.Cloneflags |= unix.CLONE_NEWNET
	}
	if l.hold != nil {
		sys.GidMappingsEnableSetgroups = true
		sys.Credential = &syscall.Credential{Uid: walls.UID, Gid: walls.GID}
	}
	return start(stage.ExePath, []string{stage.Name, stage.ModeWalls, string(l.spec.ID)}, files, sys)
}

func (l *launch) gid() int {
	if l.hold != nil {
		return l.uid
	}
	return os.Getgid()
}

func selfPath() (string, error) { return "/proc/self/exe", nil }
