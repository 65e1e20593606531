package walls

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mountDev(root string) error {
	dev := root + "/dev"
	if err := os.Mkdir(dev, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=64k,nr_inodes=64"); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := target(dev+"/"+name, false); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+name, dev+"/"+name, "", unix.MS_BIND, ""); err != nil {
			return &os.PathError{Op: "bind", Path: "/dev/" + name, Err: err}
		}
	}
	for _, dir := range []string{"pts", "shm"} {
		if err := os.Mkdir(dev+"/"+dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return err
	}
	for _, l := range []Link{{"pts/ptmx", "ptmx"}, {"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"},
		{"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}} {
		if err := os.Symlink(l.Target, dev+"/"+l.Name); err != nil {
			return err
		}
	}
	return nil
}

// MaskedProc are hidden behind an empty file or folder; SealedProc are read-only.
var (
	MaskedProc = []string{"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug",
		"/proc/kallsyms", "/proc/kmsg", "/proc/config.gz"}
	SealedProc = []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/scsi", "/proc/acpi"}
)

func mountProc(root string) error {
	if err := os.Mkdir(root+"/proc", 0o555); err != nil {
		return err
	}
	if err := unix.Mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	for _, p := range MaskedProc {
		if _, err := os.Lstat(root + p); err != nil {
			continue
		}
		if err := unix.Mount(root+"/dev/null", root+p, "", unix.MS_BIND, ""); err != nil {
			return &os.PathError{Op: "mask", Path: p, Err: err}
		}
	}
	for _, p := range SealedProc {
		if _, err := os.Lstat(root + p); err != nil {
			continue
		}
		if err := unix.Mount(root+p, root+p, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return &os.PathError{Op: "bind", Path: p, Err: err}
		}
		if err := readOnly(root+p, true, 0); err != nil {
			return &os.PathError{Op: "seal", Path: p, Err: err}
		}
	}
	return nil
}

// raiseLoopback brings lo up in an otherwise empty network.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// install puts the filter on this thread; the following exec makes it the whole process's.
func install(filter []byte) error {
	const size = 8 // of struct sock_filter
	if len(filter) == 0 || len(filter)%size != 0 {
		return unix.EINVAL
	}
	prog := unix.SockFprog{Len: uint16(len(filter) / size), Filter: (*unix.SockFilter)(unsafe.Pointer(&filter[0]))}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}
