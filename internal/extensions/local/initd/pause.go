//go:build unix

package initd

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

const (
	// stopTime is how long every program may take to stop.
	stopTime = 5 * time.Second
	// holdEvery is how often a paused sandbox is looked at. The kernel continues stopped programs by itself where a
	// killed one leaves its group without a parent, and where a terminal hangs up.
	holdEvery = 200 * time.Millisecond
)

// mode says whether the programs are stopped.
type mode struct {
	mu sync.Mutex
	lease.Mode
	before []int         // programs that were stopped already, and stay so
	resume chan struct{} // closed by a resume
}

// pause stops every program until a resume, and says so in the file that the host reads.
func (s *server) pause() wire.Result {
	s.mode.mu.Lock()
	defer s.mode.mu.Unlock()
	if s.mode.Paused {
		return wire.Result{}
	}
	s.mode.before = s.procs.hold()
	if err := s.procs.stopAll(); err != nil {
		s.procs.release(s.mode.before)
		return failure(err)
	}
	now := time.Now().UTC()
	s.mode.Paused, s.mode.Since, s.mode.resume = true, now, make(chan struct{})
	go s.keepStopped(s.mode.resume)
	return failure(s.tell())
}

// unpause lets the programs go on.
func (s *server) unpause() wire.Result {
	s.mode.mu.Lock()
	defer s.mode.mu.Unlock()
	if !s.mode.Paused {
		return wire.Result{}
	}
	now := time.Now().UTC()
	s.mode.Rested += now.Sub(s.mode.Since)
	s.mode.Paused, s.mode.Since = false, now
	if err := s.tell(); err != nil {
		return failure(err)
	}
	close(s.mode.resume)
	s.procs.release(s.mode.before)
	return wire.Result{}
}

func (s *server) tell() error {
	s.idle.change(func(i *idle) { i.held = s.mode.Paused })
	return errors.Join(s.write(lease.Tombstone{Mode: s.mode.Mode}), s.files.End.Sync())
}

// ended returns the mode as of the end.
func (m *mode) ended(at time.Time) lease.Mode {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.Mode
	if out.Paused {
		out.Paused, out.Rested = false, out.Rested+at.Sub(out.Since)
	}
	return out
}

func (m *mode) paused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Paused
}

// keepStopped stops again what something continued.
func (s *server) keepStopped(resume chan struct{}) {
	for {
		select {
		case <-resume:
			return
		case <-time.After(holdEvery):
		}
		s.mode.mu.Lock()
		if s.mode.resume == resume && s.mode.Paused && len(s.procs.moving()) > 0 {
			_ = s.procs.stopAll()
		}
		s.mode.mu.Unlock()
	}
}

// freeze stops every program for as long as a snapshot takes, and returns a function that continues those it
// stopped. Requests wait meanwhile. Without walls it stops nothing.
func (s *server) freeze() func() {
	s.mode.mu.Lock()
	if s.mode.Paused || !s.cfg.Walls {
		s.mode.mu.Unlock()
		return func() {}
	}
	before := s.procs.stoppedNow()
	_ = s.procs.stopAll()
	return func() {
		s.procs.release(before)
		s.mode.mu.Unlock()
	}
}

// hold keeps new programs from starting, and returns those that are stopped already.
func (p *procs) hold() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
	return p.stoppedNow()
}

func (p *procs) stoppedNow() []int {
	return slices.DeleteFunc(p.all(), func(pid int) bool { return !stopped(pid) })
}

// stopAll stops every program: again and again, since one that is not stopped yet may continue another.
func (p *procs) stopAll() error {
	for until := time.Now().Add(stopTime); time.Now().Before(until); time.Sleep(2 * time.Millisecond) {
		p.signalAll(syscall.SIGSTOP)
		if len(p.moving()) == 0 {
			return nil
		}
	}
	return errors.New("a program does not stop")
}

// release continues every program but those of except, and lets new ones start.
func (p *procs) release(except []int) {
	p.mu.Lock()
	p.held = false
	p.mu.Unlock()
	if len(except) == 0 {
		p.signalAll(syscall.SIGCONT)
		return
	}
	for _, pid := range p.all() {
		if !slices.Contains(except, pid) {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// signalAll reaches every program: with walls at once, all there is but ourselves.
func (p *procs) signalAll(sig syscall.Signal) {
	if p.cfg.Walls {
		_ = syscall.Kill(-1, sig)
		return
	}
	for _, pid := range p.all() {
		_ = syscall.Kill(pid, sig)
	}
}

// all lists the living programs. Without walls these are the ones with the sandbox's id in their environment.
func (p *procs) all() []int {
	if p.cfg.Walls {
		return pids()
	}
	return slices.DeleteFunc(Members(p.cfg.ID), func(pid int) bool { return pid == os.Getpid() })
}

// moving lists the programs that are not stopped.
func (p *procs) moving() []int {
	return slices.DeleteFunc(p.all(), func(pid int) bool { return !moves(pid) })
}
