//go:build linux

package local

import (
	"os"
	"syscall"
)

// dieAtEnv names the failpoint at which a test's driver process kills itself.
const dieAtEnv = "SANDBOXER_TEST_DIE_AT"

func dieNow() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// launcherEnv forces a launcher on the whole suite.
const launcherEnv = "SANDBOXER_TEST_LAUNCHER"

func testLauncher() string {
	if l := os.Getenv(launcherEnv); l != "" {
		return l
	}
	return launcherAuto
}
