package docker

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// gate is a socket in front of the engine's, which tests shut and cut.
type gate struct {
	path    string
	engine  string // its socket
	creates atomic.Int64
	writes  atomic.Int64              // archives that were sent into containers
	unique  atomic.Bool               // it has no two networks of one name, as since version 25
	swap    atomic.Pointer[[2]string] // in what is sent, the first text becomes the second, which is as long

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
	lose   string // the answer to the next request of this path is lost
	asked  string // the next answers to requests of this path are these instead of the engine's
	bodies []string
	hold   string // the next request of this path arrives when later is closed, and its connection ends at once
	later  chan struct{}
	late   chan struct{} // closed once it was answered
}

func newGate(t testing.TB, path, engine string) *gate {
	l, err := net.Listen("unix", path)
	must(t, err)
	g := &gate{path: path, engine: engine, conns: map[net.Conn]bool{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go g.serve(c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		g.cut()
		<-done
	})
	return g
}

func (g *gate) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	to, err := net.Dial("unix", g.engine)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.conns[c] = true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.conns, c)
		g.mu.Unlock()
	}()
	var losing atomic.Bool
	var both sync.WaitGroup
	both.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			if g.unique.Load() && isNetwork(buf[:n]) && bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) { // its name comes next
				var more int
				more, err = c.Read(buf[n:])
				n += more
			}
			if later, late := g.held(buf[:n]); late != nil {
				g.deliver(io.MultiReader(bytes.NewReader(buf[:n]), c), c, later)
				close(late)
				return
			}
			if body := g.instead(buf[:n]); body != "" {
				answer(io.MultiReader(bytes.NewReader(buf[:n]), c), c, body)
				_ = to.Close()
				return
			}
			if s := g.swap.Load(); s != nil {
				copy(buf, bytes.ReplaceAll(buf[:n], []byte(s[0]), []byte(s[1])))
			}
			if g.watch(buf[:n]) {
				losing.Store(true)
			}
			if n > 0 {
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				_ = to.(*net.UnixConn).CloseWrite()
				return
			}
		}
	})
	both.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := to.Read(buf)
			if losing.Load() {
				_ = c.Close()
				return
			}
			if _, bad := c.Write(buf[:n]); bad != nil || err != nil {
				_ = c.(*net.UnixConn).CloseWrite()
				return
			}
		}
	})
	both.Wait()
}

// watch counts creates and writes, and reports a request whose answer is to be lost once the engine has acted.
func (g *gate) watch(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	if !bytes.HasPrefix(line, []byte("POST ")) && !bytes.HasPrefix(line, []byte("PUT ")) {
		return false
	}
	if bytes.Contains(line, []byte("/containers/create")) {
		g.creates.Add(1)
	}
	if bytes.HasPrefix(line, []byte("PUT ")) && bytes.Contains(line, []byte("/archive?")) {
		g.writes.Add(1)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lose == "" || !bytes.Contains(line, []byte(g.lose)) {
		return false
	}
	g.lose = ""
	return true
}

// answerInstead makes the next requests of a path get these answers, and never arrive. A body that begins with the line of
// a status, "500 …", "409 …" or "403 …", is sent with that. Only a path that ends in /json or /stats is one of questions.
func (g *gate) answerInstead(path string, bodies ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked, g.bodies = path, bodies
}

func (g *gate) instead(head []byte) (body string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	if g.unique.Load() && isNetwork(head) {
		name := regexp.MustCompile(`"Name":"([^"]+)"`).FindSubmatch(head)[1]
		if exec.Command("docker", "-H", "unix://"+g.engine, "network", "inspect", string(name)).Run() == nil {
			return "409 Conflict\n{\"message\":\"network with name " + string(name) + " already exists\"}"
		}
	}
	question := strings.HasSuffix(g.asked, "/json") || strings.HasSuffix(g.asked, "/stats")
	if len(g.bodies) == 0 || bytes.HasPrefix(line, []byte("GET ")) != question || !bytes.Contains(line, []byte(g.asked)) {
		return ""
	}
	body, g.bodies = g.bodies[0], g.bodies[1:]
	return body
}

func isNetwork(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	return bytes.Contains(line, []byte("/networks/create"))
}

// silence is an answer that never comes.
const silence = "…"

// answer reads a request, answers it, and ends its connection.
func answer(from io.Reader, to io.WriteCloser, body string) {
	if r, err := http.ReadRequest(bufio.NewReader(from)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
		if body == silence {
			_, _ = io.Copy(io.Discard, from) // until who asked has gone
		}
		status := "200 OK"
		if line, rest, cut := strings.Cut(body, "\n"); cut && regexp.MustCompile("^(403|409|500) ").MatchString(line) {
			status, body = line, rest
		}
		_, _ = fmt.Fprintf(to, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n%s", status, body)
	}
	_ = to.Close()
}

func (g *gate) loseAnswerOf(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lose = path
}

// holdBack makes the next request of a path arrive only when the returned function is called, which waits for its
// answer. Whoever sent it is cut off at once.
func (g *gate) holdBack(path string) func() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold, g.later, g.late = path, make(chan struct{}), make(chan struct{})
	return sync.OnceFunc(func() {
		close(g.later)
		<-g.late
	})
}

// deliver reads a request, ends its connection, and sends it on later.
func (g *gate) deliver(from io.Reader, c io.Closer, later <-chan struct{}) {
	r, err := http.ReadRequest(bufio.NewReader(from))
	if err != nil {
		return
	}
	body, _ := io.ReadAll(r.Body)
	_ = c.Close()
	<-later
	to, err := net.Dial("unix", g.engine)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	r.Body, r.Close = io.NopCloser(bytes.NewReader(body)), true
	_ = r.Write(to)
	_, _ = io.Copy(io.Discard, to)
}

func (g *gate) held(head []byte) (later, late chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	if g.hold == "" || !bytes.Contains(line, []byte(g.hold)) {
		return nil, nil
	}
	g.hold = ""
	return g.later, g.late
}

func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cut()
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		_ = c.Close()
	}
}
