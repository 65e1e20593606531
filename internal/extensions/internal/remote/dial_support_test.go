package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// me is a user with a home and an environment of their own.
type me struct {
	home string
	env  map[string]string
	conf string
}

func newMe(t *testing.T) *me {
	t.Helper()
	u := &me{home: t.TempDir(), env: map[string]string{}}
	if err := os.Mkdir(filepath.Join(u.home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *me) options() Options {
	return Options{Home: u.home, Getenv: func(k string) string { return u.env[k] }, ConfigFile: u.conf, DialTimeout: 10 * time.Second}
}

// file writes ~/.ssh/name.
func (u *me) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(u.home, ".ssh", name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// dial connects and, if that works, runs a command to prove it.
func (u *me) dial(t *testing.T, s extensions.SSH) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	l, err := dial(ctx, s, u.options())
	if err != nil {
		if l != nil {
			t.Error("there is a connection and an error")
		}
		return err
	}
	defer l.close()
	if l.hostKey == nil {
		t.Error("the host's key is missing")
	}
	session, err := l.client.NewSession()
	if err != nil {
		t.Fatalf("no session on an open connection: %v", err)
	}
	out, err := session.Output("echo in")
	if err != nil || strings.TrimSpace(string(out)) != "in" {
		t.Fatalf("the session answers %q, %v", out, err)
	}
	return nil
}

func (u *me) mustDial(t *testing.T, s extensions.SSH) {
	t.Helper()
	if err := u.dial(t, s); err != nil {
		t.Fatalf("%v\nremedy: %s", err, extensions.RemedyOf(err))
	}
}

// fails dials and wants an error of the kind whose text or remedy has the parts.
func (u *me) fails(t *testing.T, s extensions.SSH, kind extensions.Kind, parts ...string) error {
	t.Helper()
	err := u.dial(t, s)
	if err == nil {
		t.Fatal("it was let in")
	}
	wantError(t, err, kind, parts...)
	return err
}

func wantError(t *testing.T, err error, kind extensions.Kind, parts ...string) {
	t.Helper()
	var e *extensions.Error
	if !errors.As(err, &e) {
		t.Fatalf("not an error of the contract: %v", err)
	}
	if extensions.KindOf(err) != kind {
		t.Errorf("the kind is %s, want %s: %v", extensions.KindOf(err), kind, err)
	}
	text := err.Error() + "\n" + extensions.RemedyOf(err)
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in: %s", part, text)
		}
	}
}

// sshd is a server whose log shows every request to log in.
func sshd(t *testing.T, opts ...hosttest.Option) *hosttest.Server {
	t.Helper()
	return hosttest.SSHD(t, append([]hosttest.Option{hosttest.WithConfig("LogLevel DEBUG1", "MaxStartups 100")}, opts...)...)
}

// at is the server without a word about keys.
func at(s *hosttest.Server) extensions.SSH {
	return extensions.SSH{Address: s.Address, Port: int64(s.Port), User: s.User}
}

// keyed is at with the server's client key.
func keyed(s *hosttest.Server) extensions.SSH {
	h := at(s)
	h.Identity = &extensions.SSHIdentity{PrivateKeyFile: s.KeyFile}
	return h
}

// pinned is at with the server's host key.
func pinned(s *hosttest.Server) extensions.SSH {
	h := at(s)
	h.HostKey = s.HostKeyLine
	return h
}

// requests counts how often somebody asked the server to be let in. It waits
// until the server has seen the end of the last connection.
func requests(t *testing.T, s *hosttest.Server) int {
	t.Helper()
	ended := func() bool {
		log := s.Log()
		ends := strings.Count(log, "Connection closed by") + strings.Count(log, "Received disconnect") +
			strings.Count(log, "Disconnected from") + strings.Count(log, "Connection reset by") + strings.Count(log, "Disconnecting")
		return ends > 0 && s.Connections() > 0
	}
	for end := time.Now().Add(time.Minute); !ended(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the server does not see the end of the connection:\n%s", s.Log())
		}
	}
	return strings.Count(s.Log(), "userauth-request for user")
}

// userCert certifies a user's key; edit changes the certificate first.
func userCert(t *testing.T, ca hosttest.Key, key ssh.PublicKey, edit func(*ssh.Certificate), principals ...string) *ssh.Certificate {
	t.Helper()
	return sign(t, ca, &ssh.Certificate{Key: key, CertType: ssh.UserCert, KeyId: "user", ValidPrincipals: principals,
		Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": ""}}}, edit)
}

func hostCert(t *testing.T, ca hosttest.Key, key ssh.PublicKey, edit func(*ssh.Certificate), principals ...string) *ssh.Certificate {
	t.Helper()
	return sign(t, ca, &ssh.Certificate{Key: key, CertType: ssh.HostCert, KeyId: "host", ValidPrincipals: principals}, edit)
}

func sign(t *testing.T, ca hosttest.Key, cert *ssh.Certificate, edit func(*ssh.Certificate)) *ssh.Certificate {
	t.Helper()
	cert.ValidAfter = uint64(time.Now().Add(-time.Hour).Unix())
	cert.ValidBefore = uint64(time.Now().Add(time.Hour).Unix())
	if edit != nil {
		edit(cert)
	}
	if err := cert.SignCert(rand.Reader, ca.Signer); err != nil {
		t.Fatal(err)
	}
	return cert
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sshAgent runs a real ssh-agent for the user and returns a way to fill it.
func sshAgent(t *testing.T, u *me) agent.ExtendedAgent {
	t.Helper()
	dir, err := os.MkdirTemp("", "sbxagent") // socket paths are short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := cmd.Start(); err != nil {
		t.Skipf("SKIPPED: no ssh-agent: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	var conn net.Conn
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if conn, err = net.Dial("unix", socket); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = conn.Close() })
	u.env["SSH_AUTH_SOCK"] = socket
	return agent.NewClient(conn)
}

func private(t *testing.T, path string) any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParseRawPrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// run runs a program of OpenSSH that has to succeed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}
