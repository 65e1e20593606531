package remote

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// hostile is an ssh server that lets anybody in and then does what its test
// wants; an sshd cannot be made to misbehave like that.
type hostile struct {
	t      *testing.T
	config *ssh.ServerConfig
	host   extensions.Host
	// exec is what it does with a session whose exec was asked for; the
	// session ends when it returns. nil = the exec is never answered.
	exec func(*hostileSession)
	// open decides on a channel; nil = sessions are accepted.
	open func(ssh.NewChannel) (ignore bool)
	// deaf leaves keepalives and all else unanswered.
	deaf bool

	work  sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
}

type hostileSession struct {
	ssh.Channel
	conn     io.Closer
	requests <-chan *ssh.Request
	mark     string
}

// begin reads the script and prints the mark, as sh would.
func (s *hostileSession) begin() {
	s.readHead()
	_, _ = io.WriteString(s, s.mark+"\n")
	_, _ = io.WriteString(s.Stderr(), s.mark+"\n")
}

// readHead reads until the mark's halves have come by.
func (s *hostileSession) readHead() {
	var got strings.Builder
	buf := make([]byte, 64<<10)
	for !strings.Contains(got.String(), "printf '%s\\n' \"$_sbx_t\" >&2\n") {
		n, err := s.Read(buf)
		if err != nil {
			return
		}
		got.Write(buf[:n])
	}
	for line := range strings.Lines(got.String()) {
		if half, ok := strings.CutPrefix(line, "_sbx_t="); ok {
			s.mark += strings.TrimSuffix(strings.TrimPrefix(half, "${_sbx_t}"), "\n")
		}
	}
}

func (s *hostileSession) exit(code byte) {
	_, _ = s.SendRequest("exit-status", false, []byte{0, 0, 0, code})
}

func newHostile(t *testing.T, exec func(*hostileSession)) *hostile {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{t: t, exec: exec, config: &ssh.ServerConfig{
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}}
	h.config.AddHostKey(signer)
	h.host = extensions.Host{Name: "hostile", SSH: &extensions.SSH{Address: "127.0.0.1", Port: int64(l.Addr().(*net.TCPAddr).Port), User: "me",
		HostKey:  strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))),
		Identity: &extensions.SSHIdentity{PrivateKeyFile: file}}}
	h.work.Go(func() { h.listen(l) })
	t.Cleanup(func() {
		_ = l.Close()
		h.mu.Lock()
		for _, c := range h.conns {
			_ = c.Close()
		}
		h.mu.Unlock()
		h.work.Wait()
	})
	return h
}

func (h *hostile) listen(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.conns = append(h.conns, c)
		h.mu.Unlock()
		h.work.Go(func() { h.serve(c) })
	}
}

func (h *hostile) serve(c net.Conn) {
	conn, channels, requests, err := ssh.NewServerConn(c, h.config)
	if err != nil {
		return
	}
	defer conn.Close()
	h.work.Go(func() {
		for r := range requests {
			if !h.deaf && r.WantReply {
				_ = r.Reply(false, nil)
			}
		}
	})
	for n := range channels {
		if h.open != nil && h.open(n) {
			continue
		}
		ch, requests, err := n.Accept()
		if err != nil {
			return
		}
		h.work.Go(func() { h.session(&hostileSession{Channel: ch, conn: conn, requests: requests}) })
	}
}

func (h *hostile) session(s *hostileSession) {
	for r := range s.requests {
		if h.exec == nil || r.Type != "exec" {
			continue
		}
		_ = r.Reply(true, nil)
		h.work.Go(func() {
			for range s.requests {
			}
		})
		h.exec(s)
		_ = s.Close()
		return
	}
}

func forever(w io.Writer, text string) {
	for piece := []byte(strings.Repeat(text, 1000)); ; {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// Whatever a host does, a call ends by itself, with an error that says what is
// known, and keeps nothing of what it was flooded with.
func TestHostileHosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exec    func(*hostileSession)
		prepare func(*hostile)
		kind    extensions.Kind
		says    string
		started bool
	}{
		"never answers exec":       {nil, nil, extensions.KindUnreachable, "no answer to exec", false},
		"deaf, never answers exec": {nil, func(h *hostile) { h.deaf = true }, extensions.KindUnreachable, "no answer to exec", false},
		"never opens sessions": {nil, func(h *hostile) { h.open = func(ssh.NewChannel) bool { return true } }, extensions.KindUnreachable,
			"no answer to a session", false},
		"refuses sessions": {nil, func(h *hostile) {
			h.open = func(n ssh.NewChannel) bool { return n.Reject(ssh.ResourceShortage, "go \x1b[2J away") == nil }
		}, extensions.KindUnavailable, "go  away", false},
		"garbage": {func(s *hostileSession) { forever(s, "\x00\xff\x1bsbx-") }, nil, extensions.KindIndeterminate, errNoise.Error(),
			true},
		"garbage, stderr": {func(s *hostileSession) { forever(s.Stderr(), "\x00\xff\x1b") }, nil, extensions.KindIndeterminate, errNoise.Error(),
			true},
		"endless stdout": {func(s *hostileSession) { s.begin(); forever(s, "x") }, nil, extensions.KindIndeterminate, errStray.Error(), true},
		"endless stderr": {func(s *hostileSession) { s.begin(); forever(s.Stderr(), "line\n") }, nil, extensions.KindIndeterminate,
			errStray.Error(), true},
		"endless answer": {func(s *hostileSession) { s.begin(); _, _ = io.WriteString(s, s.mark+" answer\n"); forever(s, "[") }, nil,
			extensions.KindIndeterminate, errAnswer.Error(), true},
		"endless progress": {func(s *hostileSession) { s.begin(); forever(s.Stderr(), s.mark+" "+strings.Repeat("p", 5000)+"\n") }, nil,
			extensions.KindIndeterminate, errStray.Error(), true},
		"deep answer": {func(s *hostileSession) {
			s.begin()
			_, _ = io.WriteString(s, s.mark+" answer\n"+strings.Repeat(`{"a":[`, 1<<20)+"\n"+s.mark+" end\n")
			s.exit(0)
		}, nil, extensions.KindInternal, "exceeded max depth", true},
		"no status":  {func(s *hostileSession) { s.begin() }, nil, extensions.KindIndeterminate, errNoStatus.Error(), true},
		"silent end": {func(s *hostileSession) { s.readHead() }, nil, extensions.KindIndeterminate, errNoStatus.Error(), true},
		"early end":  {func(s *hostileSession) { s.exit(1) }, nil, extensions.KindUnsupported, "does not run commands", false},
		"false answers": {func(s *hostileSession) {
			s.begin()
			_, _ = io.WriteString(s, "sbx-AAAA answer\n1\nsbx-AAAA end\n")
			s.exit(0)
		}, nil, extensions.KindInternal, "0 answers", true},
		"request flood": {func(s *hostileSession) {
			s.begin()
			for range 5000 {
				_, _ = s.SendRequest("exit-status", false, []byte{0})
				_, _ = s.SendRequest("nonsense", false, nil)
			}
			s.exit(9)
		}, nil, extensions.KindInternal, "exit code 9", true},
		"hangs up": {func(s *hostileSession) { s.begin(); _ = s.conn.Close() }, nil, extensions.KindIndeterminate, "connection lost", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t, c.exec)
			if c.prepare != nil {
				c.prepare(h)
			}
			client := open(t, h.host, Options{DialTimeout: 4 * time.Second, KeepAlive: 4 * time.Second})
			begun := time.Now()
			err := client.Call(within(t, time.Minute), Call{Script: "answer 1"}, nil)
			if took := time.Since(begun); took > 40*time.Second {
				t.Errorf("it took %s", took)
			}
			if !extensions.IsKind(err, c.kind) || !strings.Contains(err.Error(), c.says) || MayHaveStarted(err) != c.started {
				t.Errorf("%v (%s, may have started: %v)", err, extensions.KindOf(err), MayHaveStarted(err))
			}
			if len(err.Error()) > 2000 || strings.ContainsAny(err.Error(), "\x00\x1b\n") {
				t.Errorf("an error nobody wants to read: %d bytes", len(err.Error()))
			}
		})
	}
}

// A host that never ends a session is waited for as long as ctx allows.
func TestHostThatHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	h := newHostile(t, func(s *hostileSession) { s.readHead(); <-release })
	defer close(release)
	c := open(t, h.host, Options{})
	ctx := within(t, 3*time.Second)
	err := c.Call(ctx, Call{Script: "answer 1"}, nil)
	wantKind(t, err, extensions.KindTimeout)
	if !MayHaveStarted(err) || !strings.Contains(err.Error(), "may have been started") {
		t.Error(err)
	}
}

// Floods leave no memory behind while they last.
func TestFloodUsesLittleMemory(t *testing.T) { // not parallel: it measures the process
	h := newHostile(t, func(s *hostileSession) { s.begin(); forever(s.Stderr(), "x") })
	c := open(t, h.host, Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most uint64
	var got int64
	_, err := c.Run(within(t, time.Minute), Command{Script: "true", Stderr: writerFunc(func(p []byte) (int, error) {
		if got += int64(len(p)); got > 200<<20 {
			return 0, errors.New("enough")
		}
		if got%(8<<20) < int64(len(p)) {
			runtime.ReadMemStats(&after)
			most = max(most, after.HeapInuse)
		}
		return len(p), nil
	})})
	wantKind(t, err, extensions.KindIndeterminate)
	if most > before.HeapInuse+(64<<20) {
		t.Errorf("%d MiB in use, %d before", most>>20, before.HeapInuse>>20)
	}
}
