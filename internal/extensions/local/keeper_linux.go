package local

import (
	"bytes"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/stage"
)

// keep starts the process that removes the sandbox's cgroups once its init is gone, as at the deadline. If
// that process dies first, the next teardown removes them.
func (l *launch) keep(exe *os.File) error {
	if len(l.rec.Cgroups) == 0 {
		return nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	d := descriptors{files: []*os.File{null, null, null}, next: stage.FDConfig}
	defer d.close()
	var config bytes.Buffer
	err = stage.WriteConfig(&config, l.rec.Cgroups)
	if err == nil {
		_, err = d.give("config", config.Bytes())
	}
	if err != nil {
		return err
	}
	pidfd, err := unix.PidfdOpen(l.rec.Init.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil // it has failed, and what follows says why
	}
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	d.add(os.NewFile(uintptr(pidfd), "init"))
	files := d.files
	for len(files) < stage.FDExe {
		files = append(files, null)
	}
	files = append(files, exe)
	pid, err := start(stage.ExePath, []string{stage.Keeper, stage.ModeKeep, string(l.spec.ID)}, files, &syscall.SysProcAttr{Setsid: true})
	if err != nil {
		return err
	}
	l.rec.Keeper, err = identify(pid)
	return err
}
