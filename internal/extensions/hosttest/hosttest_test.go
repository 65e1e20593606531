package hosttest

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial logs in with what the server says of itself.
func dial(t *testing.T, s *Server, addr string) *ssh.Client {
	t.Helper()
	check, err := knownhosts.New(s.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	pinned, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.HostKeyLine))
	if err != nil {
		t.Fatal(err)
	}
	callback := ssh.FixedHostKey(pinned)
	if addr == s.Addr {
		callback = check
	}
	algorithms := []string{pinned.Type()}
	if pinned.Type() == ssh.KeyAlgoRSA {
		algorithms = []string{ssh.KeyAlgoRSASHA512}
	}
	c, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{User: s.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(s.ClientKey.Signer)},
		HostKeyCallback: callback, HostKeyAlgorithms: algorithms, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func run(t *testing.T, c *ssh.Client, line string) string {
	t.Helper()
	session, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	out, err := session.CombinedOutput(line)
	if err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestSessionsHaveAHomeOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := SSHD(t)
	c := dial(t, s, s.Addr)
	if got := run(t, c, "echo $HOME; cd; pwd"); got != s.HomeDir+"\n"+s.HomeDir {
		t.Errorf("home is %q, want %q", got, s.HomeDir)
	}
	if s.Connections() != 1 || s.Throttled() {
		t.Errorf("%d connections, throttled %v; want 1 and none turned away", s.Connections(), s.Throttled())
	}
}

func TestTheServerIsStock(t *testing.T) {
	t.Parallel()
	s := SSHD(t)
	c := dial(t, s, s.Addr)
	var open []*ssh.Session
	for {
		session, err := c.NewSession()
		if err != nil {
			break
		}
		open = append(open, session)
		if len(open) > 20 {
			break
		}
	}
	if len(open) != 10 {
		t.Errorf("%d sessions on one connection, want sshd's 10", len(open))
	}
	for _, session := range open {
		_ = session.Close()
	}
}

func TestConfigOfATestWins(t *testing.T) {
	t.Parallel()
	s := SSHD(t, WithConfig("MaxSessions 1", "Match User nobody", "  PermitTTY no"), WithHostKeyTypes("rsa"), WithShell("/bin/busybox sh"))
	c := dial(t, s, s.Addr)
	first, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if second, err := c.NewSession(); err == nil {
		second.Close()
		t.Error("MaxSessions 1 was not heard")
	}
	out, err := first.CombinedOutput("readlink /proc/$$/exe; echo 'a  b'")
	if got := strings.TrimSpace(string(out)); err != nil || !strings.HasSuffix(got, "busybox\na  b") {
		t.Errorf("the shell is %q: %v", got, err)
	}
	if !strings.HasPrefix(s.HostKeyLine, "ssh-rsa ") {
		t.Errorf("host key %q", s.HostKeyLine)
	}
}

// What a session leaves running is seen, and gone with the server.
func TestStopEndsWhatSessionsLeft(t *testing.T) {
	t.Parallel()
	s := SSHD(t)
	c := dial(t, s, s.Addr)
	pid := run(t, c, `setsid sleep 600 </dev/null >/dev/null 2>&1 &
		until grep -q ^sleep /proc/$!/cmdline; do sleep 0.05; done # until then it is a shell
		echo $!`)
	s.Cut()
	if err := c.Wait(); err == nil {
		t.Error("the connection outlived Cut")
	}
	left := s.Processes()
	if len(left) != 1 || !strings.HasSuffix(left[0].Command, "sleep 600") {
		t.Errorf("left running: %v, want sleep", left)
	}
	if got := Snapshot(t, s.HomeDir)["process"]; len(got) != 1 {
		t.Errorf("the inventory has %q", got)
	}
	s.Stop()
	for _, p := range processes() { // the ended may wait for pid 1 to look
		if strconv.Itoa(p.Pid) == pid {
			t.Error("sleep still runs")
		}
	}
	port := s.Port
	again := SSHD(t, WithPort(port))
	dial(t, again, again.Addr)
}

func TestPausedServerAcceptsAndSaysNothing(t *testing.T) {
	t.Parallel()
	s := SSHD(t)
	s.Pause()
	c, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("a stopped sshd wrote %d bytes", n)
	}
	s.Resume()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Errorf("after Resume: %v", err)
	}
}

func TestADiskCanBeFull(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	s := SSHD(t, WithDisk(1))
	c := dial(t, s, s.Addr)
	session, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if out, err := session.CombinedOutput("dd if=/dev/zero of=$HOME/big bs=64k count=64"); err == nil ||
		!strings.Contains(string(out), "No space left") {
		t.Errorf("4 MiB fit on 1 MiB: %v, %s", err, out)
	}
}

func TestDelayProxyDelaysAndKeepsTheEnd(t *testing.T) {
	t.Parallel()
	const rtt = 120 * time.Millisecond
	s := SSHD(t)
	addr, conns := DelayProxy(t, s.Addr, rtt)
	c := dial(t, s, addr)
	session, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	session.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
	start := time.Now()
	out, err := session.Output("wc -c")
	took := time.Since(start)
	if err != nil || strings.TrimSpace(string(out)) != strconv.Itoa(1<<20) {
		t.Fatalf("wc: %v, %s", err, out)
	}
	if took < rtt || took > 20*rtt {
		t.Errorf("an exec through the proxy took %v, want at least %v and not many of them", took, rtt)
	}
	if conns() != 1 {
		t.Errorf("%d connections", conns())
	}
}

func TestDelayProxyPassesHalfClosedStreamsOn(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // answers only after it saw the end
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b, _ := io.ReadAll(c)
		_, _ = c.Write(append(b, '!'))
	}()
	addr, _ := DelayProxy(t, l.Addr().String(), 20*time.Millisecond)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("half"))
	_ = c.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := io.ReadAll(c); err != nil || string(got) != "half!" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestImageRunsAndGoes(t *testing.T) {
	Docker(t)
	before := Snapshot(t, "sandboxer-test-")
	var name string
	t.Run("use", func(t *testing.T) {
		name = Image(t)
		if again := Image(t); again != name {
			t.Errorf("a second image: %s", again)
		}
		container := strings.TrimSuffix(name, ":latest")
		out, err := exec.CommandContext(t.Context(), "docker", "run", "--rm", "--network=none", "--name", container, name,
			"sh", "-c", "id -un 1000; which nc httpd wget ping /usr/bin/env").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "httpd") {
			t.Errorf("docker run: %v: %s", err, out)
		}
		if diff := before.Diff(Snapshot(t, "sandboxer-test-")); !strings.Contains(diff, "+ image: ") || !strings.Contains(diff, name) {
			t.Errorf("the inventory does not show the image: %q", diff)
		}
	})
	if _, err := docker("image", "inspect", name); err == nil {
		t.Error("the image is still there")
	}
}

func TestDiffNamesBothSides(t *testing.T) {
	t.Parallel()
	a := Inventory{"network": {"one", "two"}, "volume": {"v"}}
	b := Inventory{"network": {"two", "three"}, "volume": {"v"}}
	if got, want := a.Diff(b), "+ network: three\n- network: one\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := a.Diff(a); got != "" {
		t.Errorf("nothing changed, and %q", got)
	}
}

func TestKeysOfAllKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		path := filepath.Join(t.TempDir(), kind)
		k := NewKey(t, kind)
		k.Write(t, path)
		out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-y", "-f", path).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), k.Line) {
			t.Errorf("ssh-keygen reads %s differently: %v: %s", kind, err, out)
		}
	}
}

// What podman installs as docker may have a compose, and an answer to everything
// that is asked here.
func TestPodmansDockerIsNone(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]bool{"Docker version 29.1, build x": true, "podman version 5.2.2": false} {
		program := filepath.Join(t.TempDir(), "docker")
		text := "#!/bin/sh\necho 'a warning' >&2\n[ \"$1\" != --version ] || echo '" + says + "'\n"
		syscall.ForkLock.RLock() // a process that another test starts meanwhile would hold the file open, and it could not run
		err := os.WriteFile(program, []byte(text), 0o700)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := answers(program); (err == nil) != want {
			t.Errorf("%s: %v", says, err)
		}
	}
}
