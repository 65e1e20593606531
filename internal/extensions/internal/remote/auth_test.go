package remote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/hosttest"
)

// letIn adds a key to those that the server lets in.
func letIn(t *testing.T, s *hosttest.Server, lines ...string) {
	t.Helper()
	path := filepath.Join(s.Dir, "authorized_keys")
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(string(have)+strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// named is pinned with an identity.
func named(s *hosttest.Server, id extensions.SSHIdentity) extensions.SSH {
	h := pinned(s)
	h.Identity = &id
	return h
}

func add(t *testing.T, held agent.Agent, path, comment string) {
	t.Helper()
	if err := held.Add(agent.AddedKey{PrivateKey: private(t, path), Comment: comment}); err != nil {
		t.Fatal(err)
	}
}

// fill gives the agent keys that no server knows.
func fill(t *testing.T, u *me, held agent.Agent, n int) {
	t.Helper()
	for i := range n {
		path := filepath.Join(u.home, fmt.Sprintf("noise%d", i))
		hosttest.NewKey(t, "ed25519").Write(t, path)
		add(t, held, path, fmt.Sprintf("noise %d", i))
	}
}

func TestKeyFileFormats(t *testing.T) {
	t.Parallel()
	s := sshd(t)
	for _, c := range [][]string{{"-t", "ed25519"}, {"-t", "ecdsa", "-b", "384"}, {"-t", "rsa", "-b", "2048"},
		{"-t", "rsa", "-b", "2048", "-m", "PEM"}, {"-t", "ecdsa", "-m", "PEM"}, {"-t", "rsa", "-b", "2048", "-m", "PKCS8"}} {
		t.Run(strings.Join(c, " "), func(t *testing.T) {
			t.Parallel()
			s, u := sshd(t), newMe(t)
			run(t, "ssh-keygen", append([]string{"-q", "-N", "", "-f", filepath.Join(u.home, "id")}, c...)...)
			public, err := os.ReadFile(filepath.Join(u.home, "id.pub"))
			if err != nil {
				t.Fatal(err)
			}
			letIn(t, s, string(public))
			u.mustDial(t, named(s, extensions.SSHIdentity{PrivateKeyFile: "~/id"}))
		})
	}
	u := newMe(t)
	u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: "~/none"}), extensions.KindInvalid, "none")
	write(t, filepath.Join(u.home, "junk"), "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY\n-----END OPENSSH PRIVATE KEY-----\n")
	if err := u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: "~/junk"}), extensions.KindInvalid, "junk"); strings.Contains(err.Error(), "CANARY") {
		t.Errorf("the file's content is in the error: %v", err)
	}
}

func TestEncryptedKeyNeedsTheAgent(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"RFC4716", "PEM"} { // only the first has the public key in clear
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s, u := sshd(t), newMe(t)
			path := filepath.Join(u.home, "locked")
			run(t, "ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-m", format, "-N", "", "-f", path)
			held := sshAgent(t, u)
			raw := private(t, path)
			public, err := os.ReadFile(path + ".pub")
			if err != nil {
				t.Fatal(err)
			}
			letIn(t, s, string(public))
			run(t, "ssh-keygen", "-p", "-q", "-m", format, "-P", "", "-N", "secret phrase", "-f", path)
			u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: path}), extensions.KindUnauthorized, "is encrypted", "ssh-add "+path, "agent = true")
			u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: path, Agent: true}), extensions.KindUnauthorized, "does not hold it", "ssh-add "+path)
			fill(t, u, held, 8)
			if err := held.Add(agent.AddedKey{PrivateKey: raw}); err != nil {
				t.Fatal(err)
			}
			u.mustDial(t, named(s, extensions.SSHIdentity{PrivateKeyFile: path, Agent: true}))
		})
	}
}

func TestAgentAlone(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	h := named(s, extensions.SSHIdentity{Agent: true})
	u.fails(t, h, extensions.KindUnauthorized, "SSH_AUTH_SOCK is not set", "ssh-add")
	u.env["SSH_AUTH_SOCK"] = filepath.Join(u.home, "nobody")
	u.fails(t, h, extensions.KindUnauthorized, "the SSH agent is of no use")
	held := sshAgent(t, u)
	u.fails(t, h, extensions.KindUnauthorized, "it holds no key")
	fill(t, u, held, 2)
	u.fails(t, h, extensions.KindUnauthorized, fmt.Sprintf("%q", s.User), "agent (noise 0) SHA256:", "agent (noise 1) SHA256:", "publickey")
	add(t, held, s.KeyFile, "mine")
	u.mustDial(t, h)
}

// A server stops listening after MaxAuthTries keys; who names a key has that
// one offered and no other, however much the agent holds.
func TestFullAgent(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	held := sshAgent(t, u)
	fill(t, u, held, 9)
	add(t, held, s.KeyFile, "mine")
	u.fails(t, named(s, extensions.SSHIdentity{Agent: true}), extensions.KindUnauthorized, "stopped listening after", "private_key_file", "noise 0")
	u.mustDial(t, named(s, extensions.SSHIdentity{PrivateKeyFile: s.KeyFile, Agent: true}))
	u.mustDial(t, named(s, extensions.SSHIdentity{PrivateKeyFile: s.KeyFile}))
	// The public half is enough to name it.
	u.mustDial(t, named(s, extensions.SSHIdentity{PrivateKeyFile: s.KeyFile + ".pub", Agent: true}))
	before := strings.Count(s.Log(), "userauth_pubkey: publickey test")
	u.mustDial(t, named(s, extensions.SSHIdentity{PrivateKeyFile: s.KeyFile, Agent: true}))
	if n := strings.Count(s.Log(), "userauth_pubkey: publickey test") - before; n != 1 {
		t.Errorf("%d keys were offered, want 1", n)
	}
}

func TestNothingNamedTakesAgentThenDefaultFiles(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	h := pinned(s)
	u.fails(t, h, extensions.KindUnauthorized, "there is no key", "id_ed25519 does not exist", "id_rsa does not exist", "SSH_AUTH_SOCK is not set")
	for i, name := range []string{"id_rsa", "id_ecdsa", "id_ed25519"} {
		u := newMe(t)
		key := hosttest.NewKey(t, strings.TrimPrefix(name, "id_"))
		letIn(t, s, key.Line)
		key.Write(t, filepath.Join(u.home, ".ssh", name))
		if i == 0 {
			u.file(t, "id_ecdsa", "not a key") // is passed over
		}
		u.mustDial(t, h)
	}
	held := sshAgent(t, u)
	fill(t, u, held, 4)
	add(t, held, s.KeyFile, "mine")
	u.mustDial(t, h)
	// A default file's key goes first though the agent is full.
	fill(t, u, held, 8)
	s.ClientKey.Write(t, filepath.Join(u.home, ".ssh", "id_ed25519"))
	u.mustDial(t, h)
}

func TestLoginRefused(t *testing.T) {
	t.Parallel()
	u := newMe(t)
	stranger := hosttest.NewKey(t, "ed25519")
	stranger.Write(t, filepath.Join(u.home, "id"))
	s := sshd(t, hosttest.WithConfig("PasswordAuthentication yes"))
	u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: "~/id"}), extensions.KindUnauthorized,
		fmt.Sprintf("%q", s.User), filepath.Join(u.home, "id"), fingerprint(stranger.Signer.PublicKey()), "It takes: publickey, password", "authorized_keys")
	for _, method := range []string{"method password", "method keyboard-interactive"} {
		if strings.Contains(s.Log(), method) {
			t.Errorf("%s was tried", method)
		}
	}
	s = sshd(t, hosttest.WithConfig("PasswordAuthentication yes", "AuthenticationMethods publickey,password"))
	u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: s.KeyFile}), extensions.KindUnauthorized, "wants more: password")
}

func TestUserCertificates(t *testing.T) {
	t.Parallel()
	ca, key := hosttest.NewKey(t, "ed25519"), hosttest.NewKey(t, "ecdsa")
	trusted := write(t, filepath.Join(t.TempDir(), "ca.pub"), ca.Line+"\n")
	s, u := sshd(t, hosttest.WithConfig("TrustedUserCAKeys "+trusted)), newMe(t)
	path := filepath.Join(u.home, "id")
	key.Write(t, path)
	cert := func(name string, edit func(*ssh.Certificate)) string {
		return write(t, filepath.Join(u.home, name), keyText(userCert(t, ca, key.Signer.PublicKey(), edit, s.User))+" a comment\n")
	}
	good := cert("good", nil)
	u.mustDial(t, named(s, extensions.SSHIdentity{PrivateKeyFile: path, CertificateFile: good}))
	u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: path}), extensions.KindUnauthorized, fingerprint(key.Signer.PublicKey()))
	old := cert("old", func(c *ssh.Certificate) { c.ValidBefore = c.ValidAfter + 60 })
	u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: path, CertificateFile: old}), extensions.KindUnauthorized, "expired at")
	host := cert("host", func(c *ssh.Certificate) { c.CertType = ssh.HostCert })
	u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: path, CertificateFile: host}), extensions.KindInvalid, "not a user certificate")
	u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: s.KeyFile, CertificateFile: good}), extensions.KindInvalid, "is for the key")
	u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: path, CertificateFile: "~/none"}), extensions.KindInvalid, "none")
	u.fails(t, named(s, extensions.SSHIdentity{CertificateFile: good}), extensions.KindInvalid, "no private key")
	cert("id-cert.pub", nil) // beside the key, as ssh looks for it
	u.mustDial(t, named(s, extensions.SSHIdentity{PrivateKeyFile: path}))
	u.mustDial(t, named(s, extensions.SSHIdentity{CertificateFile: "~/id-cert.pub"}))

	held := sshAgent(t, u)
	withCert := named(s, extensions.SSHIdentity{CertificateFile: good, Agent: true})
	fill(t, u, held, 7)
	u.fails(t, withCert, extensions.KindInvalid, "nor in the agent")
	add(t, held, path, "mine")
	u.mustDial(t, withCert)
	if err := held.RemoveAll(); err != nil {
		t.Fatal(err)
	}
	err := held.Add(agent.AddedKey{PrivateKey: private(t, path), Certificate: userCert(t, ca, key.Signer.PublicKey(), nil, s.User)})
	if err != nil {
		t.Fatal(err)
	}
	u.mustDial(t, named(s, extensions.SSHIdentity{Agent: true}))
}

// warden writes a credential command that counts its runs.
func warden(t *testing.T, u *me, script string) (argv []string, runs func() int) {
	t.Helper()
	log := filepath.Join(u.home, "runs")
	path := write(t, filepath.Join(u.home, "warden"), "echo run >> '"+log+"'\ncd '"+u.home+"'\n"+script)
	return []string{"/bin/sh", path}, func() int {
		data, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Count(string(data), "run")
	}
}

func TestCredentialCommand(t *testing.T) {
	t.Parallel()
	ca, key := hosttest.NewKey(t, "ed25519"), hosttest.NewKey(t, "ed25519")
	trusted := write(t, filepath.Join(t.TempDir(), "ca.pub"), ca.Line+"\n")
	s, u := sshd(t, hosttest.WithConfig("TrustedUserCAKeys "+trusted)), newMe(t)
	key.Write(t, filepath.Join(u.home, "key"))
	until := func(d time.Duration) {
		write(t, filepath.Join(u.home, "cert"), keyText(userCert(t, ca, key.Signer.PublicKey(), func(c *ssh.Certificate) {
			c.ValidBefore = uint64(time.Now().Add(d).Unix())
		}, s.User))+"\n")
	}
	argv, runs := warden(t, u, "echo '# a comment'; cat key; echo; cat cert")
	h := named(s, extensions.SSHIdentity{Command: argv})

	other := h
	other.HostKey = hosttest.NewKey(t, "ed25519").Line
	until(20 * time.Second) // inside the margin: good for one login
	u.fails(t, other, extensions.KindUnauthorized, "has changed")
	if runs() != 0 {
		t.Error("a credential was fetched for a host that is not known")
	}
	u.mustDial(t, h)
	until(time.Hour)
	u.mustDial(t, h)
	if runs() != 2 {
		t.Errorf("the command ran %d times: what is about to expire has to be fetched again", runs())
	}
	u.mustDial(t, h)
	u.mustDial(t, h)
	if runs() != 2 {
		t.Errorf("the command ran %d times: what is fresh has to be kept", runs())
	}
	// What the host no longer takes is fetched again at once.
	ca2 := hosttest.NewKey(t, "ed25519")
	write(t, trusted, ca2.Line+"\n")
	ca = ca2
	until(time.Hour)
	u.mustDial(t, h)
	if runs() != 3 {
		t.Errorf("the command ran %d times, want 3", runs())
	}
	write(t, trusted, hosttest.NewKey(t, "ed25519").Line+"\n")
	u.fails(t, h, extensions.KindUnauthorized, "credential of /bin/sh SHA256:")
	if runs() != 4 {
		t.Errorf("the command ran %d times, want 4", runs())
	}
}

func TestCredentialCommandPrintsABareKey(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	s.ClientKey.Write(t, filepath.Join(u.home, "key"))
	argv, runs := warden(t, u, "cat key")
	h := named(s, extensions.SSHIdentity{Command: argv})
	u.mustDial(t, h)
	u.mustDial(t, h)
	if runs() != 2 {
		t.Errorf("the command ran %d times: nothing says how long a bare key is good", runs())
	}
}

func TestCredentialCommandFails(t *testing.T) {
	t.Parallel()
	s := sshd(t)
	for name, c := range map[string]struct {
		script, want string
		kind         extensions.Kind
	}{
		"exits":       {"echo CANARY; echo CANARY >&2; exit 3", "failed (exit status 3)", extensions.KindUnauthorized},
		"nothing":     {"true", "did not print a private key", extensions.KindUnauthorized},
		"garbage":     {"echo CANARY", "did not print a private key", extensions.KindUnauthorized},
		"too much":    {"yes CANARY", "printed more than", extensions.KindUnauthorized},
		"before":      {"echo CANARY; cat key", "before the private key", extensions.KindUnauthorized},
		"after":       {"cat key; echo CANARY", "not a user certificate", extensions.KindUnauthorized},
		"two":         {"cat key; cat key.pub; echo CANARY", "more than a private key and one certificate", extensions.KindUnauthorized},
		"broken":      {"echo '-----BEGIN OPENSSH PRIVATE KEY-----'; echo CANARYCANARY; echo '-----END OPENSSH PRIVATE KEY-----'", "of a kind we cannot read", extensions.KindUnauthorized},
		"passphrase":  {"cat locked", "with a passphrase", extensions.KindUnauthorized},
		"other's":     {"cat key; cat other", "for another key", extensions.KindUnauthorized},
		"out of date": {"cat key; cat old", "expired at", extensions.KindUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newMe(t)
			s.ClientKey.Write(t, filepath.Join(u.home, "key"))
			run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "phrase", "-f", filepath.Join(u.home, "locked"))
			ca := hosttest.NewKey(t, "ed25519")
			write(t, filepath.Join(u.home, "other"), keyText(userCert(t, ca, ca.Signer.PublicKey(), nil))+"\n")
			write(t, filepath.Join(u.home, "old"), keyText(userCert(t, ca, s.ClientKey.Signer.PublicKey(), func(c *ssh.Certificate) { c.ValidBefore = c.ValidAfter + 1 }))+"\n")
			argv, _ := warden(t, u, c.script)
			err := u.fails(t, named(s, extensions.SSHIdentity{Command: argv}), c.kind, c.want, "/bin/sh")
			if text := err.Error() + extensions.RemedyOf(err); strings.Contains(text, "CANARY") {
				t.Errorf("what the command printed is in the error: %s", text)
			}
		})
	}
	u := newMe(t)
	u.fails(t, named(s, extensions.SSHIdentity{Command: []string{"~/no/such"}}), extensions.KindInvalid, filepath.Join(u.home, "no/such"))
	u.fails(t, named(s, extensions.SSHIdentity{Command: []string{"x"}, Agent: true}), extensions.KindInvalid, "identity")
}

// Two logins at once run the command once, and one that is given up does not
// wait for the command.
func TestCredentialCommandIsSharedAndCutShort(t *testing.T) {
	t.Parallel()
	ca, key := hosttest.NewKey(t, "ed25519"), hosttest.NewKey(t, "ed25519")
	trusted := write(t, filepath.Join(t.TempDir(), "ca.pub"), ca.Line+"\n")
	s, u := sshd(t, hosttest.WithConfig("TrustedUserCAKeys "+trusted)), newMe(t)
	key.Write(t, filepath.Join(u.home, "key"))
	write(t, filepath.Join(u.home, "cert"), keyText(userCert(t, ca, key.Signer.PublicKey(), nil, s.User))+"\n")
	argv, runs := warden(t, u, "sleep 0.3; cat key cert")
	h := named(s, extensions.SSHIdentity{Command: argv})
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() { errs <- u.dial(t, h) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if runs() != 1 {
		t.Errorf("the command ran %d times", runs())
	}
	u = newMe(t)
	argv, _ = warden(t, u, "sleep 300 & echo $! > child; wait")
	wantGivenUp(t, u, named(s, extensions.SSHIdentity{Command: argv}), func() bool {
		_, err := os.Stat(filepath.Join(u.home, "child"))
		return err == nil
	})
	child, err := os.ReadFile(filepath.Join(u.home, "child"))
	if err != nil {
		t.Fatal(err)
	}
	gone(t, strings.TrimSpace(string(child)))
}

// gone waits for the end of a process: /proc keeps its entry while it runs.
func gone(t *testing.T, pid string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %s lives on: %s", pid, state)
		}
	}
}
