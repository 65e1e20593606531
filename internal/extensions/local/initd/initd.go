//go:build unix

// Package initd is the init of one sandbox. It starts and reaps programs, keeps what background programs
// print, moves files, and ends everything at the deadline of its lease, even if nothing is watching.
//
// With walls, it is pid 1 of its namespaces and runs under the same filter, without the same rights, as the
// programs it starts; when it ends, so do they. Without walls, it is an ordinary process that keeps track.
package initd

import (
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// Config is what an init gets at its start, over a pipe because it contains secrets.
type Config struct {
	ID        string   `json:"id"`
	Walls     bool     `json:"walls"`
	Access    string   `json:"access"`    // none | ro | rw, with walls
	Workspace string   `json:"workspace"` // "" = none
	Home      string   `json:"home"`
	Seed      string   `json:"seed"` // the workspace, writable while it is filled
	Env       []string `json:"env"`  // KEY=value; later entries win
	// Secrets become files in extensions.SecretsDir, by name, before anything runs; with walls only, where
	// that folder is memory of the sandbox's own.
	Secrets map[string]string `json:"secrets,omitempty"`
	Remove  []string          `json:"remove,omitempty"`
	Groups  string            `json:"groups,omitempty"` // without walls: the file that lists what to kill
	// Pids bounds the processes and threads of all programs together; 0 = no bound.
	Pids int64 `json:"pids,omitempty"`
	// Memory bounds what one program may map privately, in bytes; 0 = no bound.
	Memory int64 `json:"memory,omitempty"`
	// WatchMemory bounds what all programs hold together, in bytes, not counting files in the writable
	// folders; 0 = not watched.
	WatchMemory int64 `json:"watch_memory,omitempty"`
	// IdleReap is how long nobody may use the sandbox; 0 = as long as it lives.
	IdleReap time.Duration `json:"idle_reap,omitempty"`
	// Counted says that Files.Memory is present and counts every process of the sandbox.
	Counted bool `json:"counted,omitempty"`
}

// Files are the descriptors an init starts with.
type Files struct {
	Listener *os.File // a listening unix socket, outside
	Lease    *os.File
	End      *os.File
	Commit   *os.File // closed without a byte: the starter died before recording us
	Ready    *os.File
	Memory   *os.File // memory.stat of the sandbox's cgroup
}

type server struct {
	cfg   Config
	files Files
	procs *procs
	logs  *ring
	seed  *os.Root
	mode  mode
	idle  idle

	telling sync.Mutex
	told    bool // the end is recorded

	exited chan int // the entrypoint's code, once it has ended
	exit   int      // that code, for the record

	folders map[uint64]string // the writable folders by device, for the memory watch
}

// Serve runs the init until its deadline, or until its lease is removed, and returns after ending everything
// it can. Errors concern the start only.
func Serve(cfg Config, files Files) error {
	// Caught and dropped, not ignored: the programs we start inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGALRM, syscall.SIGABRT)
	procs, err := newProcs(cfg)
	if err != nil {
		return err
	}
	s := &server{cfg: cfg, files: files, procs: procs, logs: newRing(), exited: make(chan int, 1),
		idle: idle{after: cfg.IdleReap, since: time.Now(), cpu: -1}}
	go s.procs.reap()
	listener, err := net.FileListener(files.Listener)
	if err != nil {
		return err
	}
	if cfg.Seed != "" {
		if s.seed, err = os.OpenRoot(cfg.Seed); err != nil {
			return err
		}
	}
	if err := s.writeSecrets(); err != nil {
		return err
	}
	// Our starter still waits: nobody has damaged or removed it yet.
	deadline, err := lease.Read(files.Lease)
	if err != nil {
		return err
	}
	named := links(files.Lease) > 0
	if _, err := files.Ready.Write([]byte("ready")); err != nil {
		return err
	}
	_ = files.Ready.Close()
	var b [1]byte
	if n, _ := files.Commit.Read(b[:]); n != 1 {
		return errors.New("not committed")
	}
	_ = files.Commit.Close()
	if cfg.WatchMemory > 0 {
		go s.watchMemory()
	}
	if cfg.IdleReap > 0 {
		s.tellIdle()
	}
	go s.accept(listener)
	s.end(s.waitForEnd(deadline, named))
	return nil
}

// writeSecrets creates the files of secrets, for the sandbox's user alone.
func (s *server) writeSecrets() error {
	if len(s.cfg.Secrets) == 0 {
		return nil
	}
	if err := os.MkdirAll(extensions.SecretsDir, 0o700); err != nil {
		return err
	}
	for name, value := range s.cfg.Secrets {
		if err := os.WriteFile(filepath.Join(extensions.SecretsDir, name), []byte(value), 0o400); err != nil {
			return err
		}
	}
	clear(s.cfg.Secrets)
	return nil
}

func (s *server) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			time.Sleep(50 * time.Millisecond) // out of descriptors or memory: both pass
			continue
		}
		go s.serve(conn)
	}
}

// pollEvery is how often the lease is read again, so that another process can move the deadline.
const pollEvery = time.Second

// waitForEnd returns the reason for the end. A lease without a name was removed with the sandbox's folder and
// socket: nobody can reach the sandbox or move its deadline any more. If files never have links, so that the
// lease had no name at the start either, this proves nothing. A lease that cannot be read leaves the deadline where it
// was.
func (s *server) waitForEnd(deadline time.Time, named bool) (reason string) {
	guard := newClockGuard(deadline)
	for {
		if named && links(s.files.Lease) == 0 {
			return lease.ReasonRemoved
		}
		if next, err := lease.Read(s.files.Lease); err == nil && !next.Equal(deadline) {
			deadline = next
			guard = newClockGuard(deadline)
		}
		left := min(time.Until(deadline), guard.left())
		if left <= 0 {
			return lease.ReasonExpired
		}
		if s.rested() {
			return lease.ReasonIdle
		}
		if s.idle.after > 0 {
			left = min(left, s.idle.every())
		}
		select {
		case s.exit = <-s.exited:
			return lease.ReasonExited
		case <-time.After(min(left, pollEvery)):
		}
	}
}

// links counts the names of an open file; 1 if that is unknown.
func links(f *os.File) uint64 {
	info, err := f.Stat()
	if err != nil {
		return 1
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) //nolint:unconvert // narrower on other systems
	}
	return 1
}

func (s *server) end(reason string) {
	s.procs.endAll()
	for _, path := range s.cfg.Remove {
		_ = os.RemoveAll(path)
	}
	now := time.Now().UTC()
	_ = s.write(lease.Tombstone{EndedAt: now, Reason: reason, Exit: s.exit, Mode: s.mode.ended(now)})
	_ = s.files.End.Sync()
}

// session is one connection.
type session struct {
	*server
	ctx  context.Context
	req  wire.Request
	out  *wire.Writer
	in   chan []byte // closed at the end of input
	size chan [2]uint16
}

func (s *server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := wire.NewReader(conn)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	kind, payload, err := r.Next()
	if err != nil || kind != wire.FrameRequest {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(context.Background())
	c := &session{server: s, ctx: ctx, out: wire.NewWriter(conn), in: make(chan []byte, wire.Credit), size: make(chan [2]uint16, 1)}
	if err := c.parse(payload); err != nil {
		_ = c.out.JSON(wire.FrameResult, wire.Result{Code: wire.CodeInvalid, Message: err.Error()})
		cancel()
		return
	}
	var receiving sync.WaitGroup
	receiving.Go(func() {
		defer cancel()
		c.receive(r)
	})
	_ = c.out.JSON(wire.FrameResult, c.serveOne())
	_ = conn.Close()
	cancel()
	receiving.Wait()
}

// receive passes on input and resizes until the client hangs up.
func (c *session) receive(r *wire.Reader) {
	open := true
	defer func() {
		if open {
			close(c.in)
		}
	}()
	for {
		kind, payload, err := r.Next()
		if err != nil {
			return
		}
		switch {
		case kind == wire.FrameInput && open:
			select {
			case c.in <- append([]byte(nil), payload...):
			default:
				return // more than its credit: not our client
			}
		case kind == wire.FrameInputEnd && open:
			open = false
			close(c.in)
		case kind == wire.FrameResize && len(payload) == 4:
			select {
			case <-c.size: // only the latest counts
			default:
			}
			c.size <- [2]uint16{uint16(payload[0])<<8 | uint16(payload[1]), uint16(payload[2])<<8 | uint16(payload[3])}
		}
	}
}
