// Package failpoint lets tests stop the program between two steps. Nothing
// happens at a point unless it was armed, either for one context with
// [Inject], or for the whole process with the environment:
//
//	SANDBOXER_FAILPOINT=name:kill      SIGKILL to this process, as if power failed
//	SANDBOXER_FAILPOINT=name:error     the step fails
//	SANDBOXER_FAILPOINT=name@3:kill    at the third time only
//	SANDBOXER_FAILPOINT=a:error,b:kill several
//
// The variable is for tests; it is read once, and whoever can set it could end
// the process anyway.
package failpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Env names the variable that arms points for a process.
const Env = "SANDBOXER_FAILPOINT"

// ErrInjected is what an armed point returns in mode error.
var ErrInjected = errors.New("failpoint: injected failure")

var (
	mu    sync.Mutex
	names = map[string]bool{}
	armed = sync.OnceValue(func() map[string]*arm { return parse(os.Getenv(Env)) })
)

// Register makes names known, so that tests can go through all of them. A
// package registers its points once, in a package variable. It returns the
// number of names, for that assignment.
func Register(points ...string) int {
	mu.Lock()
	defer mu.Unlock()
	for _, p := range points {
		if names[p] {
			panic("failpoint: registered twice: " + p)
		}
		names[p] = true
	}
	return len(points)
}

// Names lists every registered point with the prefix, sorted.
func Names(prefix string) []string {
	mu.Lock()
	defer mu.Unlock()
	var out []string
	for n := range names {
		if strings.HasPrefix(n, prefix) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

type arm struct {
	mode string
	mu   sync.Mutex
	left int // hits until it fires; 0 = every time
	done bool
}

// parse reads the variable, at the first hit of any point, when all packages
// have registered theirs. A mistake in it is loud: a test that is silently
// disarmed proves nothing.
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
		if !ok || mode != "kill" && mode != "error" || !known(name) {
			panic(fmt.Sprintf("%s: %q: want name:kill, name:error or name@N:kill, with a name that is registered", Env, part))
		}
		out[name] = a
	}
	return out
}

func known(name string) bool {
	mu.Lock()
	defer mu.Unlock()
	return names[name]
}

type contextKey struct{ name string }

// Inject arms one point for calls made with the returned context. f runs at
// the point; its error is what the step returns.
func Inject(ctx context.Context, name string, f func() error) context.Context {
	return context.WithValue(ctx, contextKey{name}, f)
}

// Hit marks the step name. It returns nil unless the point is armed.
func Hit(ctx context.Context, name string) error {
	if f, ok := ctx.Value(contextKey{name}).(func() error); ok {
		return f()
	}
	points := armed()
	if points == nil {
		return nil
	}
	a, ok := points[name]
	if !ok || !a.fires() {
		return nil
	}
	if a.mode == "kill" {
		kill()
	}
	return fmt.Errorf("%w at %s", ErrInjected, name)
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

// kill ends the process the way a crash does: no deferred call, no flush.
func kill() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {} // the signal is on its way
}
