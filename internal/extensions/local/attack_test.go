//go:build linux

package local

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attackArg makes the test binary, copied into a sandbox, try one attack: it
// prints why it failed and exits 0, or exits 1 when the way is open.
const attackArg = "sandboxer-attack"

func init() {
	loadBombs()
	if len(os.Args) < 3 || os.Args[1] != attackArg {
		return
	}
	why, open := "no such attack", true
	if try, ok := attacks[os.Args[2]]; ok {
		why, open = try(os.Args[3:])
	}
	fmt.Println(why)
	if open {
		os.Exit(1)
	}
	os.Exit(0)
}

// refused turns an error into a failed attack; no error is an open way.
func refused(err error) (string, bool) {
	if err == nil {
		return "it worked", true
	}
	return err.Error(), false
}

func sysCall(nr uintptr, args ...uintptr) (string, bool) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := syscall.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno == 0 {
		return fmt.Sprintf("the call answered %d", r), true
	}
	if errno != unix.EPERM && errno != unix.ENOSYS && errno != unix.EACCES {
		return "the kernel looked at it: " + errno.Error(), true
	}
	return errno.Error(), false
}

func text(s string) uintptr {
	b, _ := syscall.BytePtrFromString(s)
	return uintptr(unsafe.Pointer(b))
}

func any1(list []string, try func(string) (string, bool)) (string, bool) {
	var all []string
	for _, s := range list {
		why, open := try(s)
		if open {
			return s + ": " + why, true
		}
		all = append(all, s+": "+why)
	}
	return strings.Join(all, "; "), false
}

func readFile(p string) (string, bool) {
	b, err := os.ReadFile(p)
	if err == nil && len(b) == 0 {
		return "empty", false
	}
	return refused(err)
}

func writeTo(p string) (string, bool) {
	f, err := os.OpenFile(p, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("0")
		_ = f.Close()
	}
	return refused(err)
}

func create(p string) (string, bool) { return refused(os.WriteFile(p, []byte("x"), 0o600)) }

func connect(network, address string) (string, bool) {
	c, err := net.DialTimeout(network, address, 2*time.Second)
	if err == nil {
		_ = c.Close()
	}
	return refused(err)
}

func socket(domain, kind, proto int) (string, bool) {
	fd, err := unix.Socket(domain, kind, proto)
	if err == nil {
		_ = unix.Close(fd)
	}
	return refused(err)
}

// vsock tries every kind of socket that reaches the machine's hypervisor or
// its guests; the family has no namespace.
func vsock([]string) (string, bool) {
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET,
		unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK} {
		if why, open := sysCall(unix.SYS_SOCKET, unix.AF_VSOCK, uintptr(kind), 0); open {
			return why, open
		}
	}
	var pair [2]int32
	return sysCall(unix.SYS_SOCKETPAIR, unix.AF_VSOCK, unix.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&pair)))
}

var attacks = map[string]func([]string) (string, bool){
	"docker-socket": func([]string) (string, bool) {
		return any1([]string{"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/user/1000/docker.sock",
			"/run/dbus/system_bus_socket"},
			func(p string) (string, bool) { return connect("unix", p) })
	},
	"host-sockets": func(a []string) (string, bool) {
		return any1(a, func(p string) (string, bool) { return connect("unix", p) })
	},
	"abstract-socket": func(a []string) (string, bool) { return connect("unix", a[0]) },
	"vsock":           vsock,
	"shadow": func([]string) (string, bool) {
		return any1([]string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers"}, readFile)
	},
	"root-home": func([]string) (string, bool) {
		return any1([]string{"/root", "/home/user", "/var/lib", "/var/log", "/work", "/boot", "/mnt"},
			func(p string) (string, bool) { _, err := os.ReadDir(p); return refused(err) })
	},
	"host-files": func(a []string) (string, bool) { return any1(a, readFile) },
	"write-outside": func([]string) (string, bool) {
		return any1([]string{"/x", "/usr/x", "/usr/local/bin/x", "/etc/x", "/bin/x", "/dev/x", "/proc/x", "/home/x", "/etc/alternatives/x",
			"/etc/ssl/certs/x"}, create)
	},
	"write-etc": func([]string) (string, bool) {
		return any1([]string{"/etc/passwd", "/etc/hosts", "/etc/ld.so.cache", "/usr/bin/env"}, writeTo)
	},
	"write-proc": func([]string) (string, bool) {
		return any1([]string{"/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory",
			"/proc/sysrq-trigger",
			"/proc/sys/user/max_user_namespaces", "/proc/irq/default_smp_affinity"}, writeTo)
	},
	"devices": func([]string) (string, bool) {
		return any1([]string{"/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/vsock"},
			func(p string) (string, bool) {
				f, err := os.Open(p)
				if err == nil {
					_ = f.Close()
				}
				return refused(err)
			})
	},
	"sys": func([]string) (string, bool) { _, err := os.ReadDir("/sys"); return refused(err) },
	"kernel-files": func([]string) (string, bool) {
		return any1([]string{"/proc/kcore", "/proc/kallsyms", "/proc/keys", "/proc/kmsg", "/proc/timer_list"}, readFile)
	},
	"host-processes": func(a []string) (string, bool) {
		seen := 0
		for _, p := range mustGlob("/proc/[0-9]*/cmdline") {
			b, _ := os.ReadFile(p)
			if seen++; bytes.Contains(b, []byte(a[0])) && !bytes.Contains(b, []byte(attackArg)) {
				return p + " shows a process of the host", true
			}
		}
		return fmt.Sprintf("%d processes, none of them the host's", seen), seen > 20
	},
	"kill-host": func(a []string) (string, bool) {
		pid, _ := strconv.Atoi(a[0])
		return refused(syscall.Kill(pid, 0))
	},
	"kill-init": func([]string) (string, bool) {
		for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP,
			syscall.SIGABRT} {
			_ = syscall.Kill(1, s)
		}
		time.Sleep(100 * time.Millisecond)
		return "the init lives if this is read", false
	},
	"ptrace-init":  func([]string) (string, bool) { return sysCall(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1) },
	"ptrace-seize": func([]string) (string, bool) { return sysCall(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1) },
	"read-init": func([]string) (string, bool) {
		return any1([]string{"/proc/1/environ", "/proc/1/mem", "/proc/1/maps", "/proc/1/exe", "/proc/1/auxv"}, readFile)
	},
	"fds-of-init": func([]string) (string, bool) {
		names, err := os.ReadDir("/proc/1/fd")
		if err == nil && len(names) == 0 {
			return "none shown", false
		}
		return refused(err)
	},
	"root-of-init": func([]string) (string, bool) { _, err := os.ReadDir("/proc/1/root/"); return refused(err) },
	"process-vm":   func([]string) (string, bool) { return sysCall(unix.SYS_PROCESS_VM_READV, 1, 0, 0, 0, 0, 0) },
	"pidfd-getfd":  func([]string) (string, bool) { return sysCall(unix.SYS_PIDFD_GETFD, 0, 0, 0) },
	"mount": func([]string) (string, bool) {
		return sysCall(unix.SYS_MOUNT, text("tmpfs"), text("/tmp"), text("tmpfs"), 0, 0)
	},
	"remount": func([]string) (string, bool) {
		return sysCall(unix.SYS_MOUNT, 0, text("/usr"), 0, unix.MS_REMOUNT|unix.MS_BIND, 0)
	},
	"umount": func([]string) (string, bool) { return sysCall(unix.SYS_UMOUNT2, text("/proc/sys"), unix.MNT_DETACH) },
	"new-mount-calls": func([]string) (string, bool) {
		for _, nr := range []uintptr{unix.SYS_FSOPEN, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_FSMOUNT} {
			if why, open := sysCall(nr, 0, text("tmpfs"), 0, 0, 0); open {
				return why, open
			}
		}
		return "all refused", false
	},
	"pivot-root":    func([]string) (string, bool) { return sysCall(unix.SYS_PIVOT_ROOT, text("/tmp"), text("/tmp")) },
	"chroot":        func([]string) (string, bool) { return sysCall(unix.SYS_CHROOT, text("/tmp")) },
	"unshare-user":  func([]string) (string, bool) { return sysCall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) },
	"unshare-mount": func([]string) (string, bool) { return sysCall(unix.SYS_UNSHARE, unix.CLONE_NEWNS) },
	"clone-user": func([]string) (string, bool) {
		_, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}})
		return refused(err)
	},
	"clone3-user": func([]string) (string, bool) {
		args := [11]uint64{unix.CLONE_NEWUSER}
		return sysCall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args[0])), 88)
	},
	"setns": func([]string) (string, bool) { return sysCall(unix.SYS_SETNS, 0, 0) },
	"keyctl": func([]string) (string, bool) {
		for _, nr := range []uintptr{unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY} {
			if why, open := sysCall(nr, 0, 0, 0, 0, 0); open {
				return why, open
			}
		}
		return "all refused", false
	},
	"io-uring": func([]string) (string, bool) {
		params := make([]byte, 256)
		return sysCall(unix.SYS_IO_URING_SETUP, 8, uintptr(unsafe.Pointer(&params[0])))
	},
	"bpf":          func([]string) (string, bool) { return sysCall(unix.SYS_BPF, 0, 0, 0) },
	"perf":         func([]string) (string, bool) { return sysCall(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0) },
	"userfaultfd":  func([]string) (string, bool) { return sysCall(unix.SYS_USERFAULTFD, 1) },
	"file-handles": func([]string) (string, bool) { return sysCall(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0) },
	"machine": func([]string) (string, bool) {
		for _, nr := range []uintptr{unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_SWAPON,
			unix.SYS_SETTIMEOFDAY,
			unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_QUOTACTL, unix.SYS_FANOTIFY_INIT} {
			if why, open := sysCall(nr, 0, 0, 0, 0, 0); open {
				return fmt.Sprintf("call %d: %s", nr, why), open
			}
		}
		return "all refused", false
	},
	"capabilities": func([]string) (string, bool) {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
		return refused(unix.Capset(&header, &data[0]))
	},
	"no-rights": func([]string) (string, bool) {
		b, _ := os.ReadFile("/proc/self/status")
		for _, want := range []string{"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
			"CapBnd:\t0000000000000000",
			"CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
			if !bytes.Contains(b, []byte(want)) {
				return "not " + want, true
			}
		}
		return "none", false
	},
	"setuid-zero": func([]string) (string, bool) {
		for _, err := range []error{unix.Setuid(0), unix.Setgid(0), unix.Setgroups([]int{0})} {
			if err == nil {
				return refused(nil)
			}
		}
		return "all refused", false
	},
	"setuid-file": func([]string) (string, bool) {
		self, err := os.ReadFile("/usr/bin/id")
		if err == nil {
			err = os.WriteFile("/workspace/suid", self, 0o755)
		}
		if err == nil {
			err = os.Chmod("/workspace/suid", 0o6755|os.ModeSetuid|os.ModeSetgid)
		}
		if err != nil {
			return err.Error(), true
		}
		r, w, _ := os.Pipe()
		pid, err := syscall.ForkExec("/workspace/suid", []string{"id", "-u"}, &syscall.ProcAttr{Files: []uintptr{0, w.Fd(), 2}})
		_ = w.Close()
		if err != nil {
			return refused(err)
		}
		out := make([]byte, 64)
		n, _ := r.Read(out)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		return "runs as " + string(out[:n]), string(out[:n]) != "1000\n"
	},
	"mknod": func([]string) (string, bool) {
		return refused(unix.Mknod("/workspace/disk", unix.S_IFBLK|0o600, 254<<8))
	},
	"inherited-fds": func([]string) (string, bool) {
		names, _ := os.ReadDir("/proc/self/fd")
		for _, n := range names {
			to, _ := os.Readlink("/proc/self/fd/" + n.Name())
			fd, _ := strconv.Atoi(n.Name())
			if fd > 2 && to != "" && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "anon_inode:[event") {
				return n.Name() + " is " + to, true
			}
		}
		return fmt.Sprint(len(names)), false
	},
	"canary": func(a []string) (string, bool) {
		return any1(append(mustGlob("/proc/[0-9]*/environ"), mustGlob("/proc/[0-9]*/cmdline")...), func(p string) (string, bool) {
			b, _ := os.ReadFile(p)
			if p == fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) || p == "/proc/self/cmdline" {
				return "our own", false
			}
			return "not there", bytes.Contains(b, []byte(a[0]))
		})
	},
	"canary-fds": func(a []string) (string, bool) {
		for _, p := range mustGlob("/proc/[0-9]*/fd/*") {
			if to, _ := os.Readlink(p); strings.Contains(to, a[0]) {
				return p + " is " + to, true
			}
		}
		return "not there", false
	},
	"network": func(a []string) (string, bool) {
		return any1(a, func(p string) (string, bool) { return connect("tcp", p) })
	},
	"udp": func([]string) (string, bool) {
		c, err := net.Dial("udp", "192.0.2.1:53")
		if err == nil {
			_, err = c.Write([]byte("x"))
			_ = c.Close()
		}
		return refused(err)
	},
	"dns": func([]string) (string, bool) { _, err := net.LookupHost("example.com"); return refused(err) },
	"interfaces": func([]string) (string, bool) {
		list, err := net.Interfaces()
		for _, i := range list {
			if i.Name != "lo" && i.Flags&net.FlagUp != 0 {
				return i.Name + " is up", true
			}
		}
		return fmt.Sprint(len(list), err), false
	},
	"raw-sockets": func([]string) (string, bool) {
		for _, s := range [][3]int{{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, {unix.AF_PACKET, unix.SOCK_RAW, 0},
			{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT},
			{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, {unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, {unix.AF_KEY, unix.SOCK_RAW, 2},
			{unix.AF_BLUETOOTH, unix.SOCK_RAW, 0}} {
			if why, open := socket(s[0], s[1], s[2]); open {
				return fmt.Sprint(s, why), open
			}
		}
		return "all refused", false
	},
	"terminal-input": func([]string) (string, bool) {
		b := byte('x')
		return sysCall(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
	},
	// The kernel drops the upper half of an int argument, so the filter must too.
	"high-bits": func([]string) (string, bool) {
		b := byte('x')
		for _, high := range []uintptr{1 << 32, 1 << 63, 0xffffffff << 32} {
			for _, c := range []struct {
				what string
				nr   uintptr
				args []uintptr
			}{
				{"ioctl TIOCSTI", unix.SYS_IOCTL, []uintptr{0, high | unix.TIOCSTI, uintptr(unsafe.Pointer(&b))}},
				{"ioctl TIOCLINUX", unix.SYS_IOCTL, []uintptr{0, high | unix.TIOCLINUX, uintptr(unsafe.Pointer(&b))}},
				{"clone with a user namespace", unix.SYS_CLONE, []uintptr{high | unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}},
				{"socket AF_VSOCK", unix.SYS_SOCKET, []uintptr{high | unix.AF_VSOCK, unix.SOCK_STREAM, 0}},
				{"socket AF_PACKET", unix.SYS_SOCKET, []uintptr{high | unix.AF_PACKET, unix.SOCK_RAW, 0}},
				{"socket NETLINK_AUDIT", unix.SYS_SOCKET, []uintptr{high | unix.AF_NETLINK, unix.SOCK_RAW, high | unix.NETLINK_AUDIT}},
				{"socketpair AF_TIPC", unix.SYS_SOCKETPAIR, []uintptr{high | unix.AF_TIPC, unix.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&b))}},
				{"personality READ_IMPLIES_EXEC", unix.SYS_PERSONALITY, []uintptr{high | 0x0400000}},
			} {
				if why, open := sysCall(c.nr, c.args...); open {
					return fmt.Sprintf("%s, %#x above: %s", c.what, high>>32, why), true
				}
			}
		}
		return "all refused", false
	},
	// What is allowed stays so whatever a caller leaves above an int.
	"high-bits-of-what-is-allowed": func([]string) (string, bool) {
		const high = 0xffffffff << 32
		pair := [2]int32{}
		fd, _, errno := syscall.Syscall(unix.SYS_SOCKET, high|unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		_ = unix.Close(int(fd))
		_, _, pairErrno := syscall.Syscall6(unix.SYS_SOCKETPAIR, high|unix.AF_UNIX, unix.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&pair)), 0, 0)
		route, _, routeErrno := syscall.Syscall(unix.SYS_SOCKET, high|unix.AF_NETLINK, unix.SOCK_RAW, high|unix.NETLINK_ROUTE)
		_ = unix.Close(int(route))
		_, _, personality := syscall.Syscall(unix.SYS_PERSONALITY, 1<<64-1, 0, 0)
		_, _, ioctl := syscall.Syscall(unix.SYS_IOCTL, 0, high|unix.TCGETS, 0)
		if errno != 0 || pairErrno != 0 || routeErrno != 0 || personality != 0 || ioctl == unix.EPERM {
			return fmt.Sprintln("socket:", errno, "socketpair:", pairErrno, "netlink:", routeErrno, "personality:", personality, "ioctl:", ioctl),
				true
		}
		return "all answered", false
	},
	"x32-calls": func([]string) (string, bool) { return sysCall(0x40000000 | unix.SYS_GETPID) },
	"raise-limits": func([]string) (string, bool) {
		return refused(unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 1 << 30, Max: 1 << 30}))
	},
	"oom-score": func([]string) (string, bool) {
		set := func() bool { b, _ := os.ReadFile("/proc/self/oom_score_adj"); return string(b) == "1000\n" }
		for try := 0; !set(); try++ { // the init sets it when we run already
			if try == 100 {
				return "it was never set", true
			}
			time.Sleep(10 * time.Millisecond)
		}
		pid, err := sleeper("/bin/sleep", "5")
		if err != nil {
			return err.Error(), true
		}
		defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
		child := fmt.Sprintf("/proc/%d", pid)
		return any1([]string{"/proc/self", "/proc/thread-self", fmt.Sprintf("/proc/%d", os.Getpid()),
			fmt.Sprintf("/proc/self/task/%d", syscall.Gettid()), "/proc/1", child}, func(dir string) (string, bool) {
			for _, n := range []string{"-1000", "0", "999"} {
				if err := os.WriteFile(dir+"/oom_score_adj", []byte(n), 0); err == nil {
					return n + " was taken", true
				}
			}
			return refused(os.WriteFile(dir+"/oom_adj", []byte("0"), 0))
		})
	},
	"hardlink-out": func([]string) (string, bool) {
		return any1([]string{"/etc/passwd", "/usr/bin/env", "/etc/ssl/certs/ca-certificates.crt", "/proc/1/environ"},
			func(p string) (string, bool) { return refused(os.Link(p, "/workspace/hard")) })
	},
	"cgroups": func([]string) (string, bool) {
		return any1([]string{"/sys/fs/cgroup", "/cgroup"}, func(p string) (string, bool) { _, err := os.ReadDir(p); return refused(err) })
	},
}

func mustGlob(pattern string) []string {
	list, _ := filepath.Glob(pattern)
	return list
}

// sleepers are children that an attack leaves; they end with the sandbox.
func sleeper(argv ...string) (int, error) {
	return syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Env: os.Environ()})
}

func touch(mb int) []byte {
	b := make([]byte, mb<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	return b
}

func loadBombs() {
	attacks["foreign-calls"] = foreignCall
	attacks["memory-forked"] = memoryForked
	attacks["memory-mapped"] = memoryMapped
	attacks["fork-bomb"] = func(a []string) (string, bool) {
		most, _ := strconv.Atoi(a[0])
		for n := range most * 4 {
			if _, err := sleeper("/bin/sleep", "20"); err != nil {
				return fmt.Sprintf("%d and then %s", n, err), n > most
			}
		}
		return "no bound was met", true
	}
	attacks["memory"] = func(a []string) (string, bool) {
		mb, _ := strconv.Atoi(a[0])
		return fmt.Sprintf("%d MiB were touched", len(touch(mb))>>20), true
	}
	attacks["memory-hold"] = func(a []string) (string, bool) {
		mb, _ := strconv.Atoi(a[0])
		if len(a) > 1 && a[1] == "hidden" {
			_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		}
		b := touch(mb)
		time.Sleep(4 * time.Second)
		return fmt.Sprintf("held %d", len(b)), false
	}
	attacks["memory-shared"] = func(a []string) (string, bool) {
		mb, _ := strconv.Atoi(a[0])
		fd, err := unix.MemfdCreate("x", 0)
		if err != nil {
			return refused(err)
		}
		chunk := touch(1)
		for range mb {
			if _, err := unix.Write(fd, chunk); err != nil {
				return refused(err)
			}
		}
		return "all of it was written", true
	}
	attacks["disk"] = func(a []string) (string, bool) {
		limit, _ := strconv.Atoi(a[0])
		chunk, written := touch(1), 0
		for _, dir := range []string{"/workspace", "/tmp", "/run", "/dev/shm", "/home/sandbox"} {
			f, err := os.Create(dir + "/fill")
			if err != nil {
				continue
			}
			for written <= limit {
				if _, err = f.Write(chunk); err != nil {
					break
				}
				written++
			}
			_ = f.Close()
		}
		for _, dir := range []string{"/workspace", "/tmp", "/run", "/dev/shm", "/home/sandbox"} {
			_ = os.Remove(dir + "/fill")
		}
		return fmt.Sprintf("%d MiB", written), written > limit
	}
}

// foreignCall makes a system call of 32-bit programs from this one.
func foreignCall([]string) (string, bool) {
	code := []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3} // mov eax, 20 (getpid); int 0x80; ret
	mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil {
		copy(mem, code)
		err = unix.Mprotect(mem, unix.PROT_READ|unix.PROT_EXEC)
	}
	if err != nil {
		return err.Error(), true
	}
	at := uintptr(unsafe.Pointer(&mem[0]))
	entry := &at
	(*(*func())(unsafe.Pointer(&entry)))()
	return "it was answered", true
}
