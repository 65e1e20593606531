// Package failpointtest arms the failpoints, either for one context with
// [Inject], or for a process that calls [Arm] with the environment:
//
//	SANDBOXER_FAILPOINT=name:kill      SIGKILL to this process, as if power failed
//	SANDBOXER_FAILPOINT=name:error     the step fails
//	SANDBOXER_FAILPOINT=name@3:kill    at the third time only
//	SANDBOXER_FAILPOINT=a:error,b:kill several
package failpointtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
)

// Env names the variable that arms points for a process.
const Env = "SANDBOXER_FAILPOINT"

// ErrInjected is what an armed point returns in mode error.
var ErrInjected = errors.New("failpoint: injected failure")

// Arm arms this process with the points of the environment. A program that tests kill calls it first.
var Arm = sync.OnceFunc(func() {
	armed := parse(os.Getenv(Env))
	hook := func(ctx context.Context, name string) error { return hit(ctx, armed, name) }
	failpoint.Hook.Store(&hook)
})

type arm struct {
	mode string
	mu   sync.Mutex
	left int // hits until it fires; 0 = every time
	done bool
}

// parse reads the variable. It panics on a mistake: a test that is silently disarmed proves nothing.
func parse(v string) map[string]*arm {
	if v == "" {
		return nil
	}
	out := map[string]*arm{}
	for _, part := range strings.Split(v, ",") {
		name, mode, ok := strings.Cut(part, ":")
		a := &arm{mode: mode}
		if n, count, nth := strings.Cut(name, "@"); nth {
			left, err := strconv.Atoi(count)
			ok, name, a.left = ok && err == nil && left > 0, n, left
		}
		if !ok || mode != "kill" && mode != "error" || !slices.Contains(points, name) {
			panic(fmt.Sprintf("%s: %q: want name:kill, name:error or name@N:kill, with a name of failpointtest's list", Env, part))
		}
		out[name] = a
	}
	return out
}

type contextKey struct{ name string }

// Inject arms one point for calls with the returned context. f runs at the point; its error is the step's.
func Inject(ctx context.Context, name string, f func() error) context.Context {
	mustKnow(name)
	Arm()
	return context.WithValue(ctx, contextKey{name}, f)
}

func hit(ctx context.Context, armed map[string]*arm, name string) error {
	mustKnow(name)
	if f, ok := ctx.Value(contextKey{name}).(func() error); ok {
		return f()
	}
	a, ok := armed[name]
	if !ok || !a.fires() {
		return nil
	}
	if a.mode == "kill" {
		kill()
	}
	return fmt.Errorf("%w at %s", ErrInjected, name)
}

func mustKnow(name string) {
	if !slices.Contains(points, name) {
		panic("failpointtest: its list lacks " + name)
	}
}

func (a *arm) fires() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return false
	}
	if a.left == 0 {
		return true
	}
	a.left--
	a.done = a.left == 0
	return a.done
}

// kill ends the process like a crash: no deferred call, no flush.
func kill() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {} // the signal is on its way
}
