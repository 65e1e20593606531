//go:build linux

package local

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// started counts what was begun below each state folder.
var started = struct {
	sync.Mutex
	at map[string]int
}{at: map[string]int{}}

func TestMain(m *testing.M) {
	exttest.GuardMain(New(), "acme/web")
	failpoint = func(step, dir string) {
		if step == "recorded" {
			started.Lock()
			started.at[filepath.Dir(dir)]++
			started.Unlock()
		}
		if want := os.Getenv(dieAtEnv); want != "" && strings.EqualFold(step, want) {
			dieNow()
		}
	}
	if action := os.Getenv(driverEnv); action != "" {
		drive(action)
	}
	goleak.VerifyTestMain(m)
}
