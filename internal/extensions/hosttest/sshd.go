package hosttest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Server is a running sshd for one test.
type Server struct {
	Addr        string // host:port, IPv6 in brackets
	Address     string // the host part of Addr, without brackets
	Port        int
	User        string
	HostKeyLine string   // the first host key, "ssh-ed25519 AAAA…"
	HostKeys    []Key    // all of them, in the order of HostKeyLine
	KeyFile     string   // private key that the server accepts
	ClientKey   Key      // the same key
	KnownHosts  string   // file that knows all host keys
	Dir         string   // private to this server; host keys are Dir/host_<kind>
	HomeDir     string   // $HOME of the sessions
	LogFile     string   // sshd's own log
	config      []string // lines of sshd_config

	t    testing.TB
	disk bool // HomeDir is a mount

	mu   sync.Mutex
	pid  int
	done chan struct{} // closed once the listener has ended
}

// SSHD starts an OpenSSH server with a stock configuration (MaxSessions 10, MaxStartups 10:30:100) on a free
// port of the loopback interface. Sessions get a private empty HOME, with the Docker plugins of the user who
// runs the test. The server ends with the test, with everything its sessions left running.
func SSHD(t testing.TB, opts ...Option) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts no sshd")
	}
	if runtime.GOOS != "linux" {
		skip(t, "sshd tests run on Linux only")
	}
	binary := sshdBinary()
	if binary == "" {
		skip(t, "no sshd: install openssh-server")
	}
	set := settings{listen: "127.0.0.1", keys: []string{"ed25519", "ecdsa"}}
	for _, o := range opts {
		o(&set)
	}
	s := newServer(t, set)
	t.Cleanup(func() {
		s.Stop()
		s.remove()
	})
	for attempt := 1; ; attempt++ {
		port := set.port
		if port == 0 {
			port = freePort(t, set.listen)
		}
		err := s.start(binary, set, port)
		if err == nil {
			break
		}
		if attempt == 5 {
			t.Fatalf("hosttest: %v", err)
		}
	}
	s.writeKnownHosts()
	t.Cleanup(func() { // runs first, while the log files still exist
		if t.Failed() {
			t.Logf("log of sshd on %s:\n%s", s.Addr, s.Log())
		}
	})
	return s
}

func sshdBinary() string {
	for _, p := range []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd"} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	p, err := exec.LookPath("sshd")
	if err != nil {
		return ""
	}
	p, err = filepath.Abs(p) // sshd needs it to start itself again
	if err != nil {
		return ""
	}
	return p
}

func newServer(t testing.TB, set settings) *Server {
	t.Helper()
	// Not t.TempDir: another user may have to pass through it, and names must be short.
	dir, err := os.MkdirTemp("", "sandboxer-host")
	if err != nil {
		t.Fatal(err)
	}
	guarded(t, dir)
	s := &Server{t: t, Dir: dir, Address: strings.Trim(set.listen, "[]"), User: set.user,
		HomeDir: filepath.Join(dir, "home"), KeyFile: filepath.Join(dir, "id"), LogFile: filepath.Join(dir, "log")}
	if s.User == "" {
		me, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		s.User = me.Username
	}
	must(t, os.Chmod(dir, 0o711)) //nolint:gosec // other users pass through to their home
	must(t, os.Mkdir(s.HomeDir, 0o700))
	if os.Getuid() == 0 {
		must(t, os.MkdirAll("/run/sshd", 0o755)) //nolint:gosec // where sshd gives up its privileges
	}
	if set.diskMB > 0 {
		mountDisk(t, s.HomeDir, set.diskMB)
		s.disk = true
	}
	s.writeKeys(set)
	s.bringPlugins(set.user != "")
	if set.user != "" {
		giveTo(t, set.user, s.HomeDir)
	}
	return s
}

func (s *Server) writeKeys(set settings) {
	s.ClientKey = sharedKey(s.t, "client", "ed25519")
	s.ClientKey.Write(s.t, s.KeyFile)
	must(s.t, os.WriteFile(filepath.Join(s.Dir, "authorized_keys"), []byte(s.ClientKey.Line+"\n"), 0o600))
	must(s.t, os.Chmod(filepath.Join(s.Dir, "authorized_keys"), 0o644)) //nolint:gosec // sshd reads it as the user who logs in
	if set.hostKey != nil {
		s.HostKeys = []Key{*set.hostKey}
	} else {
		for _, kind := range set.keys {
			s.HostKeys = append(s.HostKeys, sharedKey(s.t, "host", kind))
		}
	}
	for i, k := range s.HostKeys {
		name := "given"
		if set.hostKey == nil {
			name = set.keys[i]
		}
		k.Write(s.t, filepath.Join(s.Dir, "host_"+name))
		s.config = append(s.config, "HostKey "+filepath.Join(s.Dir, "host_"+name))
	}
	s.HostKeyLine = s.HostKeys[0].Line
}

// bringPlugins keeps `docker compose` available if it is a plugin of this user. Other users get copies,
// because they may not enter this user's home.
func (s *Server) bringPlugins(copied bool) {
	conf := os.Getenv("DOCKER_CONFIG")
	if conf == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return
		}
		conf = filepath.Join(home, ".docker")
	}
	plugins := filepath.Join(conf, "cli-plugins")
	if _, err := os.Stat(plugins); err != nil {
		return
	}
	must(s.t, os.Mkdir(filepath.Join(s.HomeDir, ".docker"), 0o700))
	own := filepath.Join(s.HomeDir, ".docker", "cli-plugins")
	if copied {
		must(s.t, os.CopyFS(own, os.DirFS(plugins)))
		return
	}
	must(s.t, os.Symlink(plugins, own))
}

func (s *Server) writeConfig(set settings, port int) string {
	var first, match []string
	for _, line := range set.config {
		line = strings.ReplaceAll(line, "%DIR%", s.Dir)
		if len(match) > 0 || strings.HasPrefix(strings.ToLower(line), "match ") {
			match = append(match, line)
		} else {
			first = append(first, line)
		}
	}
	lines := append(first, s.config...)
	lines = append(lines, "ListenAddress "+set.listen+":"+strconv.Itoa(port), "PidFile none", "LogLevel VERBOSE", "UsePAM no",
		"StrictModes no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin prohibit-password",
		"AuthorizedKeysFile "+filepath.Join(s.Dir, "authorized_keys"), "PrintMotd no", "SetEnv HOME="+s.HomeDir)
	if set.shell != "" {
		lines = append(lines, "ForceCommand exec "+set.shell+` -c "$SSH_ORIGINAL_COMMAND"`)
	}
	file := filepath.Join(s.Dir, "sshd_config")
	must(s.t, os.WriteFile(file, []byte(strings.Join(append(lines, match...), "\n")+"\n"), 0o600))
	return file
}

// start runs sshd and returns once it listens.
func (s *Server) start(binary string, set settings, port int) error {
	config := s.writeConfig(set, port)
	must(s.t, os.WriteFile(s.LogFile, nil, 0o600))
	cmd := exec.CommandContext(context.Background(), binary, "-D", "-f", config, "-E", s.LogFile)
	cmd.Dir = s.Dir
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	done := make(chan struct{})
	if err := startBound(cmd, done); err != nil {
		return err
	}
	s.mu.Lock()
	s.pid, s.done = cmd.Process.Pid, done
	s.mu.Unlock()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if strings.Contains(s.Log(), "Server listening on ") {
			s.Port = port
			s.Addr = net.JoinHostPort(s.Address, strconv.Itoa(port))
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("sshd ended at once: %s%s", stderr.String(), s.Log())
		default:
		}
		if time.Now().After(end) {
			s.Stop()
			return fmt.Errorf("sshd does not listen: %s", s.Log())
		}
	}
}

func (s *Server) writeKnownHosts() {
	s.KnownHosts = filepath.Join(s.Dir, "known_hosts")
	var b strings.Builder
	for _, k := range s.HostKeys {
		fmt.Fprintf(&b, "[%s]:%d %s\n", s.Address, s.Port, k.Line)
	}
	must(s.t, os.WriteFile(s.KnownHosts, []byte(b.String()), 0o600))
}

// Host returns the server as sandboxer_host would describe it: key pinned, identity from a file. Its name
// belongs to this server alone.
func (s *Server) Host() extensions.Host {
	return extensions.Host{Name: "host-" + strconv.Itoa(s.Port), SSH: &extensions.SSH{Address: s.Address, Port: int64(s.Port),
		User: s.User, HostKey: s.HostKeyLine, Identity: &extensions.SSHIdentity{PrivateKeyFile: s.KeyFile}}}
}

// Log returns what sshd has written so far.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.LogFile)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

var (
	connected = regexp.MustCompile(`(?m)^Connection from `)
	dropped   = regexp.MustCompile(`(?m)^(drop connection|beginning MaxStartups throttling|refusing connection)`)
)

// Connections counts the connections that sshd has accepted so far.
func (s *Server) Connections() int { return len(connected.FindAllString(s.Log(), -1)) }

// Throttled reports whether MaxStartups turned a client away.
func (s *Server) Throttled() bool { return dropped.MatchString(s.Log()) }

func freePort(t testing.TB, listen string) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", listen+":0")
	if err != nil {
		skip(t, "cannot listen on %s: %v", listen, err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("hosttest: %v", err)
	}
}
