package exttest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// recorder is a TB of its own: what a check says of a broken extension is
// kept here and does not fail the test that looks at it.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failed   bool
	skipped  bool
	lines    []string
	cleanups []func()
}

func (r *recorder) say(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprint(args...))
}

func (r *recorder) Helper()                           {}
func (r *recorder) Log(args ...any)                   { r.say(args...) }
func (r *recorder) Logf(format string, args ...any)   { r.say(fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.say(args...); r.Fail() }
func (r *recorder) Errorf(format string, args ...any) { r.say(fmt.Sprintf(format, args...)); r.Fail() }
func (r *recorder) Fatal(args ...any)                 { r.say(args...); r.FailNow() }
func (r *recorder) Fatalf(format string, args ...any) {
	r.say(fmt.Sprintf(format, args...))
	r.FailNow()
}
func (r *recorder) Skip(args ...any) { r.say(args...); r.SkipNow() }
func (r *recorder) Skipf(format string, args ...any) {
	r.say(fmt.Sprintf(format, args...))
	r.SkipNow()
}

func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

func (r *recorder) Cleanup(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, fn)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

// record runs one check to its end, cleanups included.
func record(t testing.TB, c check, h Harness) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for len(r.cleanups) > 0 {
				last := r.cleanups[len(r.cleanups)-1]
				r.cleanups = r.cleanups[:len(r.cleanups)-1]
				last()
			}
		}()
		c.start(r, h)
	}()
	<-done
	return r
}
