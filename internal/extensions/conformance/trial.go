package conformance

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Outcome is how a check ended.
type Outcome string

const (
	Passed Outcome = "passed"
	// Failed: the extension breaks the promise, as Result.Said tells.
	Failed Outcome = "failed"
	// Skipped: the check could not run here, as Result.Said tells.
	Skipped Outcome = "skipped"
)

// Result is what one check found.
type Result struct {
	Name    string        `json:"name"` // "group/promise"
	Outcome Outcome       `json:"outcome"`
	Said    []string      `json:"said,omitempty"` // what failed and what was noted, or why it was skipped
	Took    time.Duration `json:"-"`
}

// Choice is which checks a Run has.
type Choice struct {
	AtOnce int      // how many run at a time, at least 1; one if the harness is serial
	Only   []string // names of checks and of groups; nil = all that apply
}

// has reports whether a check is chosen.
func (c Choice) has(group, name string) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, group) || slices.Contains(c.Only, name)
}

// Run runs the chosen checks that apply. Each result is told as it comes, by one call at a time; the answer has them in
// the suite's order. Once ctx has ended, no further check begins, and those that did not are skipped. An error says why
// the extension could not even be asked what it declares, or that a name is of no check that applies.
func Run(ctx context.Context, h Harness, choice Choice, each func(Result)) ([]Result, error) {
	var groups []Group
	if asked := try("", func(t TB) { groups = Groups(t, h) }); asked.Outcome != Passed {
		return nil, fmt.Errorf("%s", strings.Join(asked.Said, "\n"))
	}
	if h.Serial {
		choice.AtOnce = 1
	}
	left := slices.Clone(choice.Only)
	var (
		results []Result
		checks  []Check
		rows    []row
	)
	for _, g := range groups {
		together := row{group: g}
		for _, c := range g.Checks {
			name := g.Name + "/" + c.Name
			left = slices.DeleteFunc(left, func(n string) bool { return n == g.Name || n == name })
			if !choice.has(g.Name, name) {
				continue
			}
			at := len(results)
			results, checks = append(results, Result{Name: name}), append(checks, c)
			if c.Shares {
				together.checks = append(together.checks, at)
			} else {
				rows = append(rows, row{checks: []int{at}})
			}
		}
		if len(together.checks) > 0 {
			rows = append(rows, together)
		}
	}
	if len(left) > 0 {
		return nil, extensions.Errorf(extensions.KindInvalid, "%q is no check or group of checks that applies to what is declared", left[0])
	}
	var (
		running sync.WaitGroup
		telling sync.Mutex
		room    = make(chan struct{}, choice.AtOnce)
	)
	tell := func(at int, r Result) {
		telling.Lock()
		defer telling.Unlock()
		results[at] = r
		each(r)
	}
	for _, r := range rows {
		room <- struct{}{}
		running.Go(func() {
			defer func() { <-room }()
			r.run(ctx, func(at int) {
				result := Result{Name: results[at].Name, Outcome: Skipped, Said: []string{"the run was ended before"}}
				if ctx.Err() == nil {
					result = try(result.Name, checks[at].Run)
				}
				tell(at, result)
			})
		})
	}
	running.Wait()
	return results, nil
}

// row is checks that run one after the other: those of a group that share a sandbox, or a single one.
type row struct {
	group  Group // of those that share
	checks []int
}

func (r row) run(ctx context.Context, check func(at int)) {
	t := &trial{}
	defer t.cleanUp()
	if r.group.common != nil && ctx.Err() == nil {
		t.do(r.group.Begin) // if that fails, each check says so itself
	}
	for _, at := range r.checks {
		check(at)
	}
}

// try runs one check to its end, cleanups included.
func try(name string, check func(TB)) Result {
	t := &trial{}
	begun := time.Now()
	t.do(check)
	t.cleanUp()
	r := Result{Name: name, Outcome: Passed, Said: t.said, Took: time.Since(begun)}
	switch {
	case t.failed:
		r.Outcome = Failed
	case t.skipped:
		r.Outcome = Skipped
	}
	return r
}

// do calls fn, which may end its goroutine.
func (t *trial) do(fn func(TB)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.survive()
		fn(t)
	}()
	<-done
}

// trial is the TB of one check that runs without package testing.
type trial struct {
	mu       sync.Mutex
	failed   bool
	skipped  bool
	said     []string
	cleanups []func()
}

func (t *trial) say(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, text)
}

func (t *trial) Helper()                        {}
func (t *trial) Log(args ...any)                { t.say(fmt.Sprint(args...)) }
func (t *trial) Logf(format string, a ...any)   { t.say(fmt.Sprintf(format, a...)) }
func (t *trial) Error(args ...any)              { t.Log(args...); t.fail() }
func (t *trial) Errorf(format string, a ...any) { t.Logf(format, a...); t.fail() }
func (t *trial) Fatal(args ...any)              { t.Error(args...); runtime.Goexit() }
func (t *trial) Fatalf(format string, a ...any) { t.Errorf(format, a...); runtime.Goexit() }
func (t *trial) Skip(args ...any)               { t.Log(args...); t.skip() }
func (t *trial) Skipf(format string, a ...any)  { t.Logf(format, a...); t.skip() }

func (t *trial) fail() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = true
}

func (t *trial) skip() {
	t.mu.Lock()
	t.skipped = true
	t.mu.Unlock()
	runtime.Goexit()
}

func (t *trial) Cleanup(fn func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, fn)
}

func (t *trial) TempDir() string {
	dir, err := os.MkdirTemp("", "sandboxer-check-")
	if err != nil {
		t.Fatalf("a folder for the check: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing the check's folder: %v", err)
		}
	})
	return dir
}

// cleanUp runs what was registered, last first, each to its own end.
func (t *trial) cleanUp() {
	for {
		t.mu.Lock()
		last := len(t.cleanups) - 1
		if last < 0 {
			t.mu.Unlock()
			return
		}
		fn := t.cleanups[last]
		t.cleanups = t.cleanups[:last]
		t.mu.Unlock()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer t.survive()
			fn()
		}()
		<-ended
	}
}

// survive makes a panic a failure of the check.
func (t *trial) survive() {
	if r := recover(); r != nil {
		t.Errorf("panic: %v\n%s", r, debug.Stack())
	}
}
