package hosttest

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

var (
	sigKill os.Signal = syscall.SIGKILL
	sigStop os.Signal = syscall.SIGSTOP
	sigCont os.Signal = syscall.SIGCONT
)

func signal(pid int, sig os.Signal) error { return syscall.Kill(pid, sig.(syscall.Signal)) }

func bind(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func mountDisk(t testing.TB, dir string, mb int) {
	t.Helper()
	if os.Getuid() != 0 {
		skip(t, "a disk of limited size needs root")
	}
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+strconv.Itoa(mb)+"m"))
}

func unmountDisk(t testing.TB, dir string) {
	t.Helper()
	if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
		t.Errorf("hosttest: unmount %s: %v", dir, err)
	}
}

// giveTo makes name the owner of dir and everything below it.
func giveTo(t testing.TB, name, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		skip(t, "logging in as %s needs root", name)
	}
	u, err := user.Lookup(name)
	if err != nil {
		skip(t, "no user %s here", name)
	}
	uid, err := strconv.Atoi(u.Uid)
	must(t, err)
	gid, err := strconv.Atoi(u.Gid)
	must(t, err)
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid) //nolint:gosec // nobody else is in there yet
	}))
}
