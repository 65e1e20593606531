//go:build linux

package local

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// memoryForked touches so many MiB and has so many copies share them.
func memoryForked(a []string) (string, bool) {
	mb, _ := strconv.Atoi(a[0])
	forks, _ := strconv.Atoi(a[1])
	b := touch(mb)
	lived := forkAndWait(forks, 3)
	runtime.KeepAlive(b)
	return fmt.Sprintf("%d of %d forks lived", lived, forks), false
}

// memoryMapped maps and touches so many MiB of a new file, or of shared memory.
func memoryMapped(a []string) (string, bool) {
	mb, _ := strconv.Atoi(a[0])
	fd, flags := -1, unix.MAP_SHARED|unix.MAP_ANON
	if len(a) > 1 {
		f, err := os.Create(a[1])
		if err == nil {
			err = f.Truncate(int64(mb) << 20)
		}
		if err != nil {
			return err.Error(), true
		}
		fd, flags = int(f.Fd()), unix.MAP_SHARED
	}
	b, err := unix.Mmap(fd, 0, mb<<20, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return err.Error(), true
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	time.Sleep(2 * time.Second)
	return fmt.Sprintf("held %d", len(b)), false
}

// forkAndWait makes copies of this process that sleep, and counts those that
// were not killed. A copy has one thread of the runtime's, so it may make raw
// calls only.
func forkAndWait(n, seconds int) (lived int) {
	sleep, failed := unix.Timespec{Sec: int64(seconds)}, uintptr(0)
	pids := make([]int, 0, n)
	for range n {
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == 0 && pid == 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&sleep)), 0, 0)
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, failed, 0, 0)
		}
		pids = append(pids, int(pid))
	}
	for _, pid := range pids {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err == nil && status.Exited() {
			lived++
		}
	}
	return lived
}

// Root tests it with a memory cgroup, where the machine has one, and an
// ordinary user without.
func TestMemoryIsCountedOnceAndOfEverybody(t *testing.T) {
	exttest.Undetected(t, "the detector's own memory hides the programs'")
	t.Parallel()
	for _, launcher := range []string{launcherNamespaces, launcherBubblewrap} {
		t.Run(launcher, func(t *testing.T) {
			t.Parallel()
			needLauncher(t, launcher)
			b, spec := openBackend(t, t.TempDir(), map[string]any{"launcher": launcher}), testSpec(t)
			memory, disk := int64(256), int64(1024)
			spec.Resources = extensions.Resources{MemoryMB: &memory, DiskMB: &disk, BestEffort: true}
			h := provision(t, b, spec)
			must(t, b.Upload(t.Context(), h, ".", attacker(t)))
			rec, err := b.settings.box(spec.ID).read()
			must(t, err)
			t.Logf("memory is bounded by %s", rec.Memory)
			if counts := slices.ContainsFunc(rec.Unenforced,
				func(u string) bool { return strings.HasPrefix(u, "memory_mb: ") }); counts != (rec.Memory == memoryByCounting) {
				t.Errorf("bounded by %s, and not enforced: %q", rec.Memory, rec.Unenforced)
			}
			const held = "held 83886080\n"
			for _, c := range []struct {
				name, script string
				want         []string
			}{
				{"forks that share", "exec ./attacker %s memory-forked 60 6", []string{"6 of 6 forks lived\n"}},
				{"a mapped file of the workspace", "exec ./attacker %s memory-mapped 400 /workspace/file; rm file", []string{"held 419430400\n"}},
				{"a hog in shared memory", "exec ./attacker %s memory-mapped 400", []string{""}},
				{"hogs that hide", "for i in 1 2 3 4 5 6; do ./attacker %s memory-hold 80 hidden & done; wait",
					[]string{strings.Repeat(held, 1), strings.Repeat(held, 2), strings.Repeat(held, 3)}},
			} {
				t.Run(c.name, func(t *testing.T) {
					r := shell(t, b, h, fmt.Sprintf(c.script, attackArg))
					t.Logf("exit %d: %s%s", r.ExitCode, r.Stdout, r.Stderr)
					if got := string(r.Stdout); !slices.Contains(c.want, got) {
						t.Errorf("it answers %q, not one of %q", got, c.want)
					}
				})
			}
		})
	}
}
