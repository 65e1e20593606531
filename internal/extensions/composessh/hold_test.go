package composessh

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// at has the first script of b that comes to a step wait there until act has returned, whatever the machine's speed: act
// happens at that step, not after it.
func at(t testing.TB, b *Backend, step string, act func()) (reached func() bool) {
	t.Helper()
	held := filepath.Join(t.TempDir(), "held")
	if out, err := exec.CommandContext(t.Context(), "mkfifo", held).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, out)
	}
	writer, err := os.OpenFile(held, os.O_RDWR, 0) // a script's read waits while there is one
	must(t, err)
	release := sync.OnceFunc(func() {
		_ = os.Remove(held) // later scripts pass
		_ = writer.Close()
	})
	t.Cleanup(release)
	var hit atomic.Bool
	b.onStep = func(line string) {
		if line == step && hit.CompareAndSwap(false, true) {
			defer release()
			act()
		}
	}
	b.before = "progress() {\nprintf '%s %s\\n' \"$_sbx_t\" \"$*\" >&2 2>/dev/null || :\n[ \"$*\" != " + shtext.Quote(step) + " ] || " +
		"{ read -r _ <" + shtext.Quote(held) + "; } 2>/dev/null || :\n}\n"
	return hit.Load
}

// dieAt makes the client of b die, as far as the host can tell, when a script has come to the step.
func (s *site) dieAt(t testing.TB, b *Backend, step string) (reached func() bool) {
	t.Helper()
	return at(t, b, step, s.gate.shut)
}

// patience is a caller whose time begins to run out when the test says so: a deadline from the start would measure how fast
// the machine comes to that point.
type patience struct {
	context.Context
	over chan struct{}
}

func newPatience(parent context.Context) patience { return patience{parent, make(chan struct{})} }

func (p patience) endIn(d time.Duration) { time.AfterFunc(d, func() { close(p.over) }) }

func (p patience) Done() <-chan struct{} { return p.over }

func (p patience) Err() error {
	select {
	case <-p.over:
		return context.DeadlineExceeded
	default:
		return p.Context.Err()
	}
}
