package stage

import (
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/walls"
)

// Hide keeps the programs inside from reading our memory, environment and descriptors, and from inheriting
// the descriptors.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	return unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}

// buildWalls runs on the main thread, as every init function does, and replaces the process by the init, so
// that no thread without the walls remains.
func buildWalls() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	var cfg walls.Config
	if err := ReadConfig(FDConfig, &cfg); err != nil {
		return err
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	if cfg.Exe != "" {
		if err := walls.GuardExe(cfg.Exe, FDExe); err != nil {
			return err
		}
	}
	if err := walls.Build(cfg, FDSeed, FDExe); err != nil {
		return err
	}
	for fd := uintptr(FDConfig); fd <= FDSeed; fd++ {
		if fd != FDExe {
			_, _, _ = syscall.RawSyscall(syscall.SYS_FCNTL, fd, syscall.F_SETFD, 0) // not all are open
		}
	}
	return execSelf()
}

func execSelf() error {
	argv, err := syscall.SlicePtrFromStrings([]string{Name, ModeInside, os.Args[2]})
	if err != nil {
		return err
	}
	envp := []*byte{nil}
	empty := []byte{0}
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, FDExe, uintptr(unsafe.Pointer(&empty[0])), uintptr(unsafe.Pointer(&argv[0])),
		uintptr(unsafe.Pointer(&envp[0])), unix.AT_EMPTY_PATH, 0)
	return &walls.StepError{Step: "init", Err: errno}
}

func describe(err error) string {
	f := Failure{Step: "init", Text: err.Error()}
	var step *walls.StepError
	if errors.As(err, &step) {
		f.Step, f.Text = step.Step, step.Err.Error()
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		f.Errno = int(errno)
	}
	b, _ := json.Marshal(f)
	return string(b)
}
