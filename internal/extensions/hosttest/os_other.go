//go:build !linux

package hosttest

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// SSHD skips on these systems before it uses any of these.
var sigKill, sigStop, sigCont os.Signal = os.Kill, os.Kill, os.Kill

func signal(int, os.Signal) error { return errors.ErrUnsupported }

func bind(*exec.Cmd) {}

func ownSession(*exec.Cmd) {}

func mountDisk(t testing.TB, _ string, _ int) { t.Helper(); skip(t, "Linux only") }

func unmountDisk(testing.TB, string) {}

func giveTo(t testing.TB, _, _ string) { t.Helper(); skip(t, "Linux only") }
