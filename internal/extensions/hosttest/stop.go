package hosttest

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// startBound starts cmd so that it dies with this process, and closes done once it has ended. The kernel ties
// it to the thread that started it, hence the goroutine that keeps its thread.
func startBound(cmd *exec.Cmd, done chan<- struct{}) error {
	bind(cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait()
		close(done)
	}()
	return <-started
}

// Pid is the listener's process id.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid
}

// Stop ends the server, its connections and everything its sessions left running, and waits for it. Stopping
// a stopped server does nothing.
func (s *Server) Stop() {
	s.mu.Lock()
	pid, done := s.pid, s.done
	s.pid, s.done = 0, nil
	s.mu.Unlock()
	if pid != 0 {
		for _, p := range append(servers(pid), pid) {
			_ = signal(p, sigKill)
		}
		<-done
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left := s.Processes()
		for _, p := range left {
			_ = signal(p.Pid, sigKill)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Errorf("hosttest: these processes of %s cannot be ended: %v", s.Addr, left)
			return
		}
	}
}

// Cut kills the connections, but neither the listener nor what the sessions run: to the host, it looks like a
// network that fails midway.
func (s *Server) Cut() {
	for _, p := range servers(s.Pid()) {
		_ = signal(p, sigKill)
	}
}

// Pause stops the listener and its connections (SIGSTOP): the host's kernel still accepts connections, and
// nothing answers.
func (s *Server) Pause() { s.signalAll(sigStop) }

// Resume undoes Pause.
func (s *Server) Resume() { s.signalAll(sigCont) }

func (s *Server) signalAll(sig os.Signal) {
	pid := s.Pid()
	for _, p := range append(servers(pid), pid) {
		if err := signal(p, sig); err != nil {
			s.t.Logf("hosttest: process %d: %v", p, err)
		}
	}
}

// Processes lists what this server's sessions started and what still runs, wherever it has moved since: such
// processes have the server's HOME.
func (s *Server) Processes() []Process {
	var out []Process
	for _, p := range processes() {
		if slices.Contains(p.env(), "HOME="+s.HomeDir) && p.Pid != os.Getpid() {
			out = append(out, p)
		}
	}
	return out
}

func (s *Server) remove() {
	if s.disk {
		unmountDisk(s.t, s.HomeDir)
	}
	if err := os.RemoveAll(s.Dir); err != nil {
		s.t.Errorf("hosttest: %v", err)
	}
}

// servers returns the sshd processes below pid, without what their sessions run.
func servers(pid int) []int {
	if pid == 0 {
		return nil
	}
	var out []int
	all := processes()
	for known := []int{pid}; len(known) > 0; {
		var next []int
		for _, p := range all {
			if slices.Contains(known, p.parent) && (p.comm == "sshd" || p.comm == "sshd-session" || p.comm == "sshd-auth") {
				next = append(next, p.Pid)
			}
		}
		out = append(out, next...)
		known = next
	}
	return out
}

// String names the process for people.
func (p Process) String() string { return strconv.Itoa(p.Pid) + " " + p.Command }
