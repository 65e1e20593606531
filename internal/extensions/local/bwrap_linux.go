package local

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/stage"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/walls"
)

func findBubblewrap() (string, error) {
	for _, dir := range strings.Split(standardPath, ":") {
		if path, err := exec.LookPath(dir + "/bwrap"); err == nil {
			return path, nil
		}
	}
	return "", extensions.Errorf(extensions.KindUnsupported,
		"bubblewrap (bwrap) is not installed").WithRemedy("install bubblewrap 0.8 or newer")
}

// startBubblewrap lets bwrap create the namespaces, mounts and rights and install the filter; our stage then
// does the rest and becomes the init. Everything passes over descriptors, and bwrap's environment is empty.
func (l *launch) startBubblewrap(ctx context.Context, files []*os.File) (int, error) {
	bwrap, err := findBubblewrap()
	if err != nil {
		return 0, err
	}
	extra := &descriptors{next: stage.FDSeed + 1}
	defer extra.close()
	filterFD, err := extra.give("filter", l.walls.Filter)
	if err != nil {
		return 0, err
	}
	argv, err := l.bubblewrapArgs(extra, filterFD)
	if err != nil {
		return 0, err
	}
	infoR, infoW, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer func() { _ = infoR.Close() }()
	argv = append(argv, "--info-fd", strconv.Itoa(extra.add(infoW)))
	argsFD, err := extra.give("args", []byte(strings.Join(argv, "\x00")+"\x00"))
	if err != nil {
		return 0, err
	}
	sys := &syscall.SysProcAttr{Setsid: true}
	if l.hold != nil {
		sys.Credential = &syscall.Credential{Uid: uint32(l.uid), Gid: uint32(l.gid())}
	}
	_, err = start(bwrap, []string{"bwrap", "--args", strconv.Itoa(argsFD), "--", stage.ExePath, stage.ModeWalls, string(l.spec.ID)},
		append(files, extra.files...), sys)
	extra.close()
	if err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = infoR.Close() })
	defer stop()
	var info struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(infoR).Decode(&info); err != nil || info.Child <= 0 {
		return 0, &stage.Failure{Step: "namespaces", Errno: int(unix.EPERM), Text: "bubblewrap did not create a sandbox"}
	}
	return info.Child, nil
}

// bubblewrapArgs expresses in bwrap's arguments what walls.Build does itself.
func (l *launch) bubblewrapArgs(extra *descriptors, filterFD int) ([]string, error) {
	a := []string{"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--as-pid-1", "--new-session",
		"--uid", strconv.Itoa(walls.UID), "--gid", strconv.Itoa(walls.GID), "--hostname", l.walls.Hostname, "--clearenv", "--cap-drop", "ALL"}
	if l.walls.OwnNet {
		a = append(a, "--unshare-net")
	}
	for _, dir := range []string{"/etc", "/home"} {
		a = append(a, "--perms", "0755", "--dir", dir)
	}
	for _, v := range l.walls.Views {
		a = append(a, "--ro-bind", v.Source, v.Dest)
	}
	for _, link := range l.walls.Links {
		a = append(a, "--symlink", link.Target, link.Name)
	}
	for _, f := range l.walls.Files {
		fd, err := extra.give("etc", []byte(f.Text))
		if err != nil {
			return nil, err
		}
		a = append(a, "--perms", "0644", "--file", strconv.Itoa(fd), f.Name)
	}
	// Without a mount of our own, each writable folder is a tmpfs; their sizes add up to the limit.
	whole, small := l.walls.DiskBytes, min(l.walls.DiskBytes/8, 64<<20)
	if l.walls.Access != extensions.AccessNone {
		a = append(a, sized("0755", whole-small*2-whole/4, walls.Workspace)...)
	}
	a = append(a, sized("1777", whole/8, "/tmp")...)
	a = append(a, sized("0755", whole/8, walls.Home)...)
	a = append(a, sized("0755", small, "/run")...)
	a = append(a, "--dev", "/dev")
	a = append(a, sized("1777", small, "/dev/shm")...)
	a = append(a, "--remount-ro", "/dev", "--proc", "/proc")
	for _, p := range walls.MaskedProc {
		if _, err := os.Lstat(p); err == nil {
			a = append(a, "--dev-bind", "/dev/null", p)
		}
	}
	a = append(a, "--remount-ro", "/", "--chdir", "/", "--seccomp", strconv.Itoa(filterFD))
	return a, nil
}

func sized(mode string, bytes int64, dest string) []string {
	return []string{"--perms", mode, "--size", strconv.FormatInt(max(bytes, 1<<16), 10), "--tmpfs", dest}
}

// descriptors are further files of a child, numbered in order.
type descriptors struct {
	next  int
	files []*os.File
}

func (d *descriptors) add(f *os.File) int {
	d.files = append(d.files, f)
	d.next++
	return d.next - 1
}

// give puts data into memory that the child reads from a descriptor.
func (d *descriptors) give(name string, data []byte) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return 0, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(data)
	if _, seekErr := f.Seek(0, 0); err != nil || seekErr != nil {
		_ = f.Close()
		return 0, errors.Join(err, seekErr)
	}
	return d.add(f), nil
}

func (d *descriptors) close() {
	for _, f := range d.files {
		_ = f.Close()
	}
}
