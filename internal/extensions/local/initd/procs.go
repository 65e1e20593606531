//go:build unix

package initd

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// procs starts programs and reaps every child we get, orphans included. Starting and reaping exclude each
// other, so that a program that ends at once is known before it is reaped.
type procs struct {
	cfg     Config
	starts  chan func() // run on the thread that starts programs
	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus
	groups  map[int]bool // sessions we started, by leader; without walls
	lastTag uint64
	held    bool // the sandbox is paused: nothing starts
}

func newProcs(cfg Config) (*procs, error) {
	p := &procs{cfg: cfg, starts: make(chan func()), waiting: map[int]chan syscall.WaitStatus{}, groups: map[int]bool{}}
	ready := make(chan error)
	go p.starter(ready)
	return p, <-ready
}

// starter lends its thread to whoever starts a program. Programs lack what the thread gave up; the init keeps
// it.
func (p *procs) starter(ready chan<- error) {
	runtime.LockOSThread()
	ready <- p.giveUp()
	for start := range p.starts {
		start()
	}
}

// job is one started program and everything that descends from it.
type job struct {
	pid  int
	tag  uint64
	done chan syscall.WaitStatus
}

// start runs a program in a new session. files are its descriptors 0, 1 and 2.
func (p *procs) start(path string, argv, env []string, dir string, files [3]*os.File, tty bool) (*job, error) {
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: tty, Ctty: 0}}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		return nil, errPaused
	}
	j := &job{done: make(chan syscall.WaitStatus, 1)}
	p.lastTag++
	j.tag = tagNext(p.lastTag)
	var pid int
	started := make(chan error)
	p.starts <- func() {
		var err error
		pid, err = syscall.ForkExec(path, argv, attr)
		started <- err
	}
	if err := <-started; err != nil {
		return nil, err
	}
	j.pid = pid
	p.confine(pid)
	p.waiting[pid] = j.done
	if !p.cfg.Walls {
		p.groups[pid] = true
		p.noteGroup(pid)
	}
	return j, nil
}

var errPaused = errors.New("the sandbox is paused")

func (p *procs) reap() {
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGCHLD)
	for {
		select {
		case <-sig:
		case <-time.After(time.Second): // a coalesced signal must not cost a zombie
		}
		p.mu.Lock()
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
			if done, ok := p.waiting[pid]; ok {
				delete(p.waiting, pid)
				done <- status
			}
			if !p.cfg.Walls && syscall.Kill(-pid, 0) != nil {
				delete(p.groups, pid) // it is empty, so the number may be reused
			}
		}
		p.mu.Unlock()
	}
}

// kill ends the job: its process group and all its descendants, even those that left the group. Stopping
// everything before killing anything wins against programs that start others faster than they are found.
func (p *procs) kill(j *job) {
	_ = syscall.Kill(-j.pid, syscall.SIGSTOP)
	stopped := map[int]bool{}
	for range 100 {
		found := false
		for _, pid := range p.descendants(j) {
			if !stopped[pid] {
				stopped[pid], found = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		if !found {
			break
		}
	}
	_ = syscall.Kill(-j.pid, syscall.SIGKILL)
	for pid := range stopped {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// endAll ends every program of the sandbox. Without walls these are the ones in the sessions we started or
// with the sandbox's id in their environment.
func (p *procs) endAll() {
	if p.cfg.Walls {
		_ = syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid := range p.groups {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	for range 20 {
		left := Members(p.cfg.ID)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(left) == 0 {
			return
		}
	}
}

// descendants lists the living processes of a job, in whatever group.
func (p *procs) descendants(j *job) []int {
	list := tagged(j.tag)
	if p.cfg.Walls {
		return list
	}
	own := Members(p.cfg.ID) // other sandboxes and the host's programs are visible
	return slices.DeleteFunc(list, func(pid int) bool { return !slices.Contains(own, pid) })
}

// noteGroup adds a session to the file that a teardown reads if this process was killed and can end nothing
// itself.
func (p *procs) noteGroup(pid int) {
	if p.cfg.Groups == "" {
		return
	}
	f, err := os.OpenFile(p.cfg.Groups, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(f, "%d\n", pid)
	_ = f.Close()
}
