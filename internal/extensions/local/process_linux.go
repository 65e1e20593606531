package local

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// bootTime returns when the machine started, by its own clock.
func bootTime() time.Time {
	b, _ := os.ReadFile("/proc/stat")
	_, after, _ := bytes.Cut(b, []byte("\nbtime "))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// processState returns a process's state letter and start time, in clock ticks after boot (fields 3 and 22 of
// proc_pid_stat(5)).
func processState(pid int) (state byte, start uint64, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	i := bytes.LastIndexByte(b, ')') // the name before it may contain anything
	f := bytes.Fields(b[i+1:])
	if i < 0 || len(f) < 20 {
		return 0, 0, false
	}
	start, err = strconv.ParseUint(string(f[19]), 10, 64)
	return f[0][0], start, err == nil
}

func identify(pid int) (*process, error) {
	_, start, ok := processState(pid)
	if !ok {
		return nil, errors.New("the init ended at its start")
	}
	return &process{PID: pid, Start: start, BootID: bootID()}, nil
}

// alive reports whether this very process still runs. A zombie does not.
func (p *process) alive() bool {
	if p == nil || p.PID <= 0 || p.BootID != bootID() {
		return false
	}
	state, start, ok := processState(p.PID)
	return ok && start == p.Start && state != 'Z' && state != 'X'
}

// serves reports whether this very process runs as an init of the sandbox. A handle comes from elsewhere, so
// its word is not enough to end a process.
func (p *process) serves(id extensions.ID) bool {
	if !p.alive() {
		return false
	}
	line, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/cmdline")
	argv := strings.Split(string(line), "\x00")
	return err == nil && len(argv) > 2 && argv[2] == string(id)
}

func (p *process) rebooted() bool { return p != nil && p.BootID != bootID() }

// kill ends the process and waits until it is gone.
func (p *process) kill(ctx context.Context) error {
	if !p.alive() {
		return nil
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !p.alive() { // another process got the pid before we had the descriptor
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	for p.alive() {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 50)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
	}
	return nil
}
