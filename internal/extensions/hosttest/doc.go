// Package hosttest gives tests a real host: a throwaway sshd with a stock configuration, this machine's
// Docker daemon, an image that needs no registry, a proxy that adds round-trip time, and an inventory of what
// a machine holds before and after. Everything ends with the test that asked for it.
package hosttest

import (
	"os"
	"testing"
)

// noSkipEnv makes a missing daemon or program a failure, as in CI.
const noSkipEnv = "SANDBOXER_NO_SKIP"

// skip says loudly what is missing; if skips are forbidden, it fails.
func skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(noSkipEnv) == "1" {
		t.Fatalf("needed here: "+format, args...)
	}
	t.Skipf("SKIPPED: "+format, args...)
}
