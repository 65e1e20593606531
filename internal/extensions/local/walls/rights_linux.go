package walls

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropCapabilities gives up every capability for good: first the bounding set, so that no file can restore
// one, then all sets of this thread.
func dropCapabilities() error {
	const locked = 0x2f // noroot, no setuid fixup, keep caps off, each locked; see capabilities(7)
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, locked, 0, 0, 0); err != nil {
		return err
	}
	for c := uintptr(0); c < 64; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			if errors.Is(err, unix.EINVAL) && c > unix.CAP_AUDIT_READ {
				break // the kernel has no more capabilities
			}
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// limit sets the resource limits, never above our own hard limit.
func limit(c Config) error {
	for _, l := range c.Limits {
		var have unix.Rlimit
		if err := unix.Getrlimit(l.Resource, &have); err != nil {
			return step("limits", err)
		}
		value := min(l.Value, have.Max)
		if err := unix.Setrlimit(l.Resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return step("limits", err)
		}
	}
	if len(c.CPUs) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, n := range c.CPUs {
		set.Set(n)
	}
	return step("cpus", unix.SchedSetaffinity(0, &set))
}

// The rights of Landlock's file system rules, by the ABI that introduced them.
const (
	landlockRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockABI1 = 1<<13 - 1
)

// landlock is the second layer. Even if a mount lacks a flag, programs cannot write outside the writable
// folders, and abstract sockets and signals stop at the sandbox. A kernel without Landlock is accepted, since
// the walls do not depend on it. exe remains executable wherever it lies.
func landlock(c Config, exe int) error { return restrict(c, exe, "/dev", "/proc") }

// SealProc keeps the calling thread, and what it starts from now on, from writing in /proc, where a program
// could put others before itself when the kernel looks for memory. The init, which writes there, does without
// it.
func SealProc(c Config) error { return restrict(c, -1, "/dev") }

// restrict allows writing only to the sandbox's folders and the further ones. Restrictions add up. exe is the descriptor of
// a file outside the root that may run, or negative.
func restrict(c Config, exe int, further ...string) error {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno == unix.ENOSYS || errno == unix.EOPNOTSUPP {
		return nil
	}
	if errno != 0 {
		return errno
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landlockABI1}
	if abi >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	size := uintptr(24) // later fields stay zero
	switch {
	case abi < 4:
		size = 8
	case abi < 6:
		size = 16
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return errno
	}
	defer func() { _ = unix.Close(int(fd)) }()
	if err := allow(int(fd), "/", landlockRead); err != nil {
		return err
	}
	writable := append(c.Writable(), further...)
	if c.Access == "ro" { // the init fills it; the mount makes it read-only
		writable = append(writable, Workspace)
	}
	for _, dir := range writable {
		if err := allow(int(fd), dir, attr.Handled_access_fs); err != nil {
			return err
		}
	}
	if exe >= 0 { // sealed memory has no place that a rule could name, and needs none
		if err := allowFile(int(fd), exe, unix.LANDLOCK_ACCESS_FS_EXECUTE|unix.LANDLOCK_ACCESS_FS_READ_FILE); err != nil &&
			!errors.Is(err, unix.EBADFD) {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func allow(ruleset int, dir string, access uint64) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "landlock", Path: dir, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	return allowFile(ruleset, fd, access)
}

// allowFile gives a right to what fd is, and below it.
func allowFile(ruleset, fd int, access uint64) error {
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)),
		0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
