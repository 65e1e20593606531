//go:build unix

package initd

import (
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// idle knows since when nobody uses the sandbox. Time asleep does not count, as nobody could use it then.
type idle struct {
	after time.Duration // until the end; 0 = it may be idle as long as it lives
	mu    sync.Mutex
	using int  // requests under way
	held  bool // it is paused
	over  bool // it is ending, so nothing begins
	since time.Time
	// cpu is what the programs had used at since, or soon after; -1 = not looked at yet.
	cpu  time.Duration
	next time.Time // when the programs are looked at again
}

// unused are the requests that are no use of a sandbox. Log lines are read from outside: a terminal that was left
// following them keeps nothing alive. A readiness attempt is a use: a sandbox in the making is not idle.
var unused = map[string]bool{wire.OpLogs: true, wire.OpPing: true, wire.OpPause: true, wire.OpEnter: true}

// use keeps the sandbox from being idle until done is called; false if it is ending.
func (s *server) use(op string) (done func(), ok bool) {
	if s.idle.after == 0 || unused[op] {
		return func() {}, true
	}
	if !s.idle.change(func(i *idle) { i.using++ }) {
		return nil, false
	}
	s.tellIdle()
	return func() {
		s.idle.change(func(i *idle) { i.using-- })
		s.tellIdle()
	}, true
}

// change applies what somebody does with the sandbox, from when on it is idle anew; false if it is ending.
func (i *idle) change(by func(*idle)) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.over {
		by(i)
		i.since, i.cpu = time.Now(), -1
	}
	return !i.over
}

// idleSince returns since when the sandbox is idle; zero while it is used or paused, or if idleness never ends it.
func (i *idle) idleSince() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.after == 0 || i.using > 0 || i.held {
		return time.Time{}
	}
	return i.since.UTC().Round(0)
}

// looks is into how many parts the idle time is divided by looks at the programs; an end is late by one at most.
const looks = 60

// every is the time between two looks.
func (i *idle) every() time.Duration {
	return min(max(i.after/looks, 10*time.Millisecond), 10*time.Second)
}

// rested reports that the sandbox was idle for long enough, and then lets nothing begin any more.
func (s *server) rested() bool {
	i, now := &s.idle, time.Now()
	if i.after == 0 || now.Before(i.next) {
		return false
	}
	i.next = now.Add(i.every())
	cpu, err := s.procs.cpu()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.using > 0 || i.held {
		return false
	}
	first := i.cpu < 0
	// Less than before: a program has ended and left its time to nobody.
	if !first && (err != nil || cpu < i.cpu || cpu-i.cpu >= extensions.IdleCPU(i.after)) {
		i.since, first = now, true
		go s.tellIdle() // a snapshot may hold the file for long, and the deadline must not wait
	}
	if first {
		i.cpu = cpu
	}
	i.over = err == nil && now.Sub(i.since) >= i.after
	return i.over
}

func (s *server) tellIdle() {
	s.mode.mu.Lock()
	defer s.mode.mu.Unlock()
	_ = s.write(lease.Tombstone{Mode: s.mode.Mode})
}

// write records t for the host, after the end only the end itself.
func (s *server) write(t lease.Tombstone) error {
	s.telling.Lock()
	defer s.telling.Unlock()
	if s.told {
		return nil
	}
	s.told = !t.EndedAt.IsZero()
	t.IdleSince = s.idle.idleSince()
	return lease.WriteTombstone(s.files.End, t)
}
