package box

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lacking says why this machine cannot have boxes; "" = it can.
var lacking = sync.OnceValue(func() string {
	if os.Geteuid() != 0 {
		return "that needs root"
	}
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = namespaces()
	if err := cmd.Run(); err != nil {
		return "the kernel gives no namespaces: " + err.Error()
	}
	return ""
})

// namespaces are those of a box's first process, which ends with the test.
func namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
}

// Box is the inside of one sandbox.
type Box struct {
	Root string // on this machine
	UID  int    // of all its processes, and its group

	mu     sync.Mutex
	keeper *exec.Cmd     // the first process, which reaps what nobody waits for
	over   chan struct{} // closed once the keeper has ended
	homes  map[string]string
	shelf  *Shelf
}

// New makes a box in a new folder of that name, for users by their names, with their homes. All have the same
// user id.
func (s *Shelf) New(name string, homes map[string]string) (*Box, error) {
	b := s.empty(name, homes)
	all := slices.Collect(func(yield func(string) bool) {
		for _, home := range homes {
			if !yield(home) {
				return
			}
		}
	})
	for dir, mode := range folders {
		if err := errors.Join(os.MkdirAll(b.Root+dir, 0o755), os.Chmod(b.Root+dir, mode)); err != nil { //nolint:gosec // the root of a sandbox
			return nil, err
		}
	}
	for _, home := range all {
		if err := os.MkdirAll(b.Root+home, 0o755); err != nil { //nolint:gosec // likewise
			return nil, err
		}
	}
	if err := b.programs(); err != nil {
		return nil, err
	}
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} {
		at := b.Root + "/dev/" + name
		if err := unix.Mknod(at, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil {
			return nil, fmt.Errorf("mknod %s: %w", at, err)
		}
		if err := os.Chmod(at, 0o666); err != nil { //nolint:gosec // as everywhere
			return nil, err
		}
	}
	return b, b.Own()
}

// Copy makes a box with all that a folder holds, such as another box's Root, whose processes may run meanwhile.
func (s *Shelf) Copy(name, from string, homes map[string]string) (*Box, error) {
	b := s.empty(name, homes)
	if err := os.MkdirAll(b.Root, 0o755); err != nil { //nolint:gosec // the root of a sandbox
		return nil, err
	}
	out, err := exec.Command("cp", "-a", "--reflink=auto", from+"/.", b.Root).CombinedOutput() //nolint:noctx // bounded by what a test wrote
	if err != nil && !strings.Contains(string(out), "No such file") {                          // a file that a process removed meanwhile
		return nil, fmt.Errorf("cp: %w: %s", err, out)
	}
	return b, b.Own()
}

func (s *Shelf) empty(name string, homes map[string]string) *Box {
	uid := 1<<20 + rand.IntN(1<<30) //nolint:gosec // a number that others hardly have, not a secret
	return &Box{Root: filepath.Join(s.folder, name), UID: uid, homes: homes, shelf: s}
}

// applets are the programs of busybox.
var applets = sync.OnceValues(func() ([]string, error) {
	list, err := exec.Command("busybox", "--list").Output()
	return strings.Fields(string(list)), err
})

func (b *Box) programs() error {
	if err := os.Link(b.shelf.busybox, b.Root+"/bin/busybox"); err != nil {
		return err
	}
	all, err := applets()
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	for _, applet := range all {
		if err := os.Symlink("busybox", b.Root+"/bin/"+applet); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// Own gives all files of the box to its user, and names its users. A file that the test put there becomes the
// sandbox's so.
func (b *Box) Own() error {
	var passwd, group strings.Builder
	names := slices.SortedFunc(maps.Keys(b.homes), func(x, y string) int { // the first is the one whose the files are
		return cmp.Or(cmp.Compare(strings.Count(x, "root"), strings.Count(y, "root")), cmp.Compare(x, y))
	})
	for _, name := range names {
		fmt.Fprintf(&passwd, "%s:x:%[2]d:%[2]d::%[3]s:/bin/sh\n", name, b.UID, b.homes[name])
		fmt.Fprintf(&group, "%s:x:%d:\n", name, b.UID)
	}
	err := errors.Join(os.WriteFile(b.Root+"/etc/passwd", []byte(passwd.String()), 0o644), //nolint:gosec // for everybody inside
		os.WriteFile(b.Root+"/etc/group", []byte(group.String()), 0o644)) //nolint:gosec // likewise
	return errors.Join(err, filepath.WalkDir(b.Root, func(at string, _ fs.DirEntry, err error) error {
		if err != nil || at == b.Root+"/bin/busybox" { // a name of the shelf's own program
			return err
		}
		return os.Lchown(at, b.UID, b.UID) //nolint:gosec // of a test; links are not followed
	}))
}

// Start starts a command in the box: its Path, its Dir and the names of its files are those inside. It shares a
// process group with all others that were started so, as those of a daemon inside do, unless Setsid or Setpgid
// is set in its attributes.
func (b *Box) Start(cmd *exec.Cmd) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.keep(); err != nil {
		return err
	}
	a := &syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		*a = *cmd.SysProcAttr
	}
	// By this way in, the first process's mounts are there too.
	a.Chroot = fmt.Sprintf("/proc/%d/root", b.keeper.Process.Pid)
	a.Credential = &syscall.Credential{Uid: uint32(b.UID), Gid: uint32(b.UID)}
	if !a.Setsid && !a.Setpgid {
		a.Setpgid, a.Pgid = true, 1
	}
	cmd.SysProcAttr = a
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	return b.enter(cmd.Start)
}

// enter calls start on a thread whose children are in the box's namespace of processes. The thread lives on afterwards:
// ending it would end whatever it had started before that is bound to it, such as another test's terraform.
func (b *Box) enter(start func() error) error {
	inside, err := os.Open(fmt.Sprintf("/proc/%d/ns/pid", b.keeper.Process.Pid))
	if err != nil {
		return fmt.Errorf("the box's namespace of processes: %w", err)
	}
	defer inside.Close()
	outside, err := os.Open("/proc/self/ns/pid")
	if err != nil {
		return fmt.Errorf("this process's own namespace of processes: %w", err)
	}
	defer outside.Close()
	runtime.LockOSThread()
	if err := unix.Setns(int(inside.Fd()), unix.CLONE_NEWPID); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("the box's namespace of processes: %w", err)
	}
	err = start()
	if err := unix.Setns(int(outside.Fd()), unix.CLONE_NEWPID); err != nil {
		panic(fmt.Sprintf("a thread cannot leave a box's namespace of processes: %v", err))
	}
	runtime.UnlockOSThread()
	return err
}

// keep makes sure that the first process runs.
func (b *Box) keep() error {
	if b.keeper != nil && stateOf(b.keeper.Process.Pid) != "Z" {
		return nil
	}
	b.dismiss()
	// A shell that waits reaps whatever it is the parent of.
	const first = "mount -t proc proc /proc || exit; echo; while :; do sleep 3600 & wait; done"
	cmd := exec.Command("/bin/busybox", "sh", "-c", first) //nolint:noctx // it lives as long as the box
	cmd.SysProcAttr = namespaces()
	cmd.SysProcAttr.Chroot, cmd.SysProcAttr.Setpgid, cmd.Dir, cmd.Env = b.Root, true, "/", []string{"PATH=/bin"}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var words strings.Builder
	cmd.Stderr = &words
	started, over := make(chan error), make(chan struct{})
	go func() {
		// The kernel ends the first process with the thread that started it, which therefore serves nothing else meanwhile.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- cmd.Start()
		<-over
	}()
	if err := <-started; err != nil {
		close(over)
		return fmt.Errorf("the first process of a box: %w", err)
	}
	b.keeper, b.over = cmd, over
	if n, _ := ready.Read(make([]byte, 1)); n == 0 {
		b.keeper = nil
		err := cmd.Wait()
		close(over)
		return fmt.Errorf("the first process of a box ended: %w: %s", err, words.String())
	}
	return nil
}

// dismiss kills the first process, and the kernel all others with it. It is gone only when whoever started one
// of them has waited for it.
func (b *Box) dismiss() {
	if b.keeper != nil {
		_ = b.keeper.Process.Kill()
		keeper, over := b.keeper, b.over
		b.shelf.ends.Go(func() {
			_ = keeper.Wait()
			close(over)
		})
		b.keeper = nil
	}
}

// Processes lists what runs inside, without the first process, by the machine's numbers.
func (b *Box) Processes() []int {
	var pids []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		status, err := os.ReadFile("/proc/" + e.Name() + "/status")
		text := string(status)
		if err != nil || !strings.Contains(text, fmt.Sprintf("\nUid:\t%d\t", b.UID)) || strings.Contains(text, "\nState:\tZ") {
			continue
		}
		pids = append(pids, pid)
	}
	return pids
}

// signal sends sig to all processes inside, and to those that they start meanwhile, until settled holds for all.
func (b *Box) signal(sig syscall.Signal, settled func(pid int) bool) error {
	for range 500 {
		done := true
		for _, pid := range b.Processes() {
			if !settled(pid) {
				done = false
				_ = syscall.Kill(pid, sig)
			}
		}
		if done {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Errorf("processes %v of %s ignore %s", b.Processes(), b.Root, sig)
}

// Freeze stops all that runs inside; Thaw lets it go on.
func (b *Box) Freeze() error {
	return b.signal(syscall.SIGSTOP, func(pid int) bool { return strings.Contains(stateOf(pid), "T") })
}

// Thaw ends Freeze.
func (b *Box) Thaw() error {
	return b.signal(syscall.SIGCONT, func(pid int) bool { return !strings.Contains(stateOf(pid), "T") })
}

// Kill ends all that runs inside, wherever it hid; the files stay.
func (b *Box) Kill() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dismiss()
	return b.signal(syscall.SIGKILL, func(int) bool { return false })
}

// Remove ends what runs inside, and the folder.
func (b *Box) Remove() error { return errors.Join(b.Kill(), os.RemoveAll(b.Root)) }

func stateOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	state, _, _ := strings.Cut(after, " ")
	return state
}
