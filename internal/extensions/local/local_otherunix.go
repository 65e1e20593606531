//go:build unix && !linux

package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// launch starts a sandbox without walls, and only if the profile asks for that: this system has no
// namespaces.
func (b *Backend) launch(ctx context.Context, bx box, rec *record, spec extensions.Spec) error {
	return b.launchPlain(ctx, bx, rec, spec, errNoWalls())
}

func selfPath() (string, error) { return os.Executable() }

func listenSocket(b box) (*os.File, error) { return listenAt(b.path(socketName)) }

// bootID is the time of the boot if the system has no better name for it.
var bootID = sync.OnceValue(func() string {
	b, _ := exec.Command("/usr/sbin/sysctl", "-n", "kern.boottime").Output()
	head, _, _ := strings.Cut(string(b), "}")
	return strings.TrimSpace(head)
})

func bootTime() time.Time { return time.Time{} }

func identify(pid int) (*process, error) {
	return &process{PID: pid, BootID: bootID()}, nil
}

func (p *process) alive() bool {
	return p != nil && p.PID > 0 && p.BootID == bootID() && !errors.Is(syscall.Kill(p.PID, 0), syscall.ESRCH)
}

// serves returns false: nothing here distinguishes a process from a later one with its pid.
func (*process) serves(extensions.ID) bool { return false }

func (p *process) rebooted() bool { return p != nil && p.BootID != bootID() }

func (p *process) kill(ctx context.Context) error {
	for p.alive() {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return os.NewSyscallError("kill", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}
