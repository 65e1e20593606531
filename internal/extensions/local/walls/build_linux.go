package walls

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// StepError names the failed step, for the side that classifies it.
type StepError struct {
	Step string
	Err  error
}

func (e *StepError) Error() string { return e.Step + ": " + e.Err.Error() }

func (e *StepError) Unwrap() error { return e.Err }

func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return &StepError{name, err}
}

// Build builds the walls around the calling thread, which must be the only one that continues: an exec
// replaces the rest of the process by exeFD. seedFD is the descriptor number for the writable workspace.
func Build(c Config, seedFD, exeFD int) error {
	unix.Umask(0o022)
	if !c.Built {
		if err := buildRoot(c, seedFD); err != nil {
			return err
		}
		if err := step("host name", unix.Sethostname([]byte(c.Hostname))); err != nil {
			return err
		}
		if c.OwnNet {
			if err := step("loopback", raiseLoopback()); err != nil {
				return err
			}
		}
		if err := step("cgroup namespace", unix.Unshare(unix.CLONE_NEWCGROUP)); err != nil {
			return err
		}
	}
	if err := limit(c); err != nil {
		return err
	}
	if !c.Built {
		if err := step("capabilities", dropCapabilities()); err != nil {
			return err
		}
	}
	if err := step("no new privileges", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); err != nil {
		return err
	}
	if err := step("landlock", landlock(c, exeFD)); err != nil {
		return err
	}
	if c.Built {
		return nil
	}
	return step("system call filter", install(c.Filter))
}

// newRoot is mounted over: nothing shown inside lies below it.
func newRoot() string {
	for _, dir := range []string{"/sys", "/mnt", "/srv", "/tmp"} {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return "/tmp"
}

func buildRoot(c Config, seedFD int) error {
	if err := step("private mounts", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
		return err
	}
	root := newRoot()
	if err := step("root", unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=4m,nr_inodes=4096")); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		make func() error
	}{
		{"views", func() error { return mountViews(root, c) }},
		{"etc", func() error { return writeFiles(root, c) }},
		{"dev", func() error { return mountDev(root) }},
		{"writable folders", func() error { return mountWritable(root, c, seedFD) }},
		{"proc", func() error { return mountProc(root) }},
		{"pivot", func() error { return pivot(root) }},
	} {
		if err := step(part.name, part.make()); err != nil {
			return err
		}
	}
	return nil
}

func pivot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	for _, dir := range []string{"/dev", "/"} {
		if err := readOnly(dir, false, 0); err != nil {
			return err
		}
	}
	return nil
}

// readOnly makes a mount read-only; the flags are mount_setattr(2)'s.
func readOnly(path string, recursive bool, extra uint64) error {
	flags := uint(0)
	if recursive {
		flags = unix.AT_RECURSIVE
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | extra}
	return unix.MountSetattr(unix.AT_FDCWD, path, flags, &attr)
}

func mountViews(root string, c Config) error {
	for _, v := range c.Views {
		dest := root + v.Dest
		info, err := os.Stat(v.Source)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) && strings.HasPrefix(v.Source, "/etc/") {
			continue // what this user may not read, the sandbox may not either
		}
		if err != nil {
			return err
		}
		if err := target(dest, info.IsDir()); err != nil {
			return err
		}
		if err := unix.Mount(v.Source, dest, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return &os.PathError{Op: "bind", Path: v.Source, Err: err}
		}
		if err := readOnly(dest, true, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
			return &os.PathError{Op: "seal", Path: v.Source, Err: err}
		}
	}
	for _, l := range c.Links {
		if err := os.Symlink(l.Target, root+l.Name); err != nil {
			return err
		}
	}
	return nil
}

func target(name string, dir bool) error {
	if dir {
		return os.MkdirAll(name, 0o755)
	}
	if err := os.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func writeFiles(root string, c Config) error {
	for _, f := range c.Files {
		name := root + f.Name
		if err := os.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(f.Text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func mountWritable(root string, c Config, seedFD int) error {
	pool := root + "/.pool"
	if err := os.Mkdir(pool, 0o700); err != nil {
		return err
	}
	data := "mode=0755,size=" + strconv.FormatInt(c.DiskBytes, 10) + ",nr_inodes=" + strconv.FormatInt(c.Inodes, 10)
	if err := unix.Mount("tmpfs", pool, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return err
	}
	for _, m := range []struct {
		name, dest string
		mode       os.FileMode
	}{
		{"workspace", Workspace, 0o755}, {"home", Home, 0o755}, {"tmp", "/tmp", 0o1777}, {"run", "/run", 0o755}, {"shm", "/dev/shm", 0o1777},
	} {
		if m.name == "workspace" && c.Access == "none" {
			continue
		}
		from := pool + "/" + m.name
		if err := os.Mkdir(from, 0o755); err != nil {
			return err
		}
		if err := unix.Chmod(from, uint32(m.mode)); err != nil {
			return err
		}
		if err := os.MkdirAll(root+m.dest, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(from, root+m.dest, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	if c.Access != "none" {
		if err := keepSeed(pool+"/workspace", seedFD); err != nil {
			return err
		}
	}
	if c.Access == "ro" {
		if err := readOnly(root+Workspace, false, 0); err != nil {
			return err
		}
	}
	if err := unix.Unmount(pool, unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Remove(pool)
}

// keepSeed opens the workspace while it is writable: the init fills it through this descriptor after the pool
// itself is out of sight.
func keepSeed(path string, seedFD int) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Dup3(fd, seedFD, unix.O_CLOEXEC); err != nil {
		return err
	}
	return unix.Close(fd)
}
