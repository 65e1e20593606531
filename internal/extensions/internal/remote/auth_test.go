package remote

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
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
	if err := u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: "~/junk"}), extensions.KindInvalid,
		"junk"); strings.Contains(err.Error(), "CANARY") {
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
			u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: path}), extensions.KindUnauthorized, "is encrypted", "ssh-add "+path,
				"agent = true")
			u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: path, Agent: true}), extensions.KindUnauthorized, "does not have it",
				"ssh-add "+path)
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
	u.fails(t, h, extensions.KindUnauthorized, "the SSH agent cannot be used")
	held := sshAgent(t, u)
	u.fails(t, h, extensions.KindUnauthorized, "it has no key")
	fill(t, u, held, 2)
	u.fails(t, h, extensions.KindUnauthorized, fmt.Sprintf("%q", s.User), "agent (noise 0) SHA256:", "agent (noise 1) SHA256:", "publickey")
	add(t, held, s.KeyFile, "mine")
	u.mustDial(t, h)
}

// An agent that hangs is told as that, and does not hold up who did not ask for it.
func TestAgentThatHangs(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	dir, err := os.MkdirTemp("", "sbxagent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	u.env["SSH_AUTH_SOCK"] = l.Addr().String()
	o := u.options()
	o.DialTimeout = 4 * time.Second // a busy machine's key exchange fits into it
	_, err = dial(t.Context(), named(s, extensions.SSHIdentity{Agent: true}), o)
	if err == nil {
		t.Fatal("it was let in")
	}
	wantError(t, err, extensions.KindUnauthorized, "the SSH agent cannot be used")
	s.ClientKey.Write(t, filepath.Join(u.home, ".ssh", "id_ed25519"))
	c, err := dial(t.Context(), pinned(s), o)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.close()
	for n := 3; n < 9; n++ { // what ends first, the agent's connection or the host's, is chance
		wantGivenUp(t, u, named(s, extensions.SSHIdentity{Agent: true}), func() bool { return strings.Count(s.Log(), "method none") == n })
	}
}

// A server stops listening after MaxAuthTries keys; who names a key has that
// one offered and no other, however much the agent holds.
func TestFullAgent(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	held := sshAgent(t, u)
	fill(t, u, held, 9)
	add(t, held, s.KeyFile, "mine")
	u.fails(t, named(s, extensions.SSHIdentity{Agent: true}), extensions.KindUnauthorized, "stopped listening after", "private_key_file",
		"noise 0")
	u.mustDial(t, named(s, extensions.SSHIdentity{PrivateKeyFile: s.KeyFile, Agent: true}))
	u.mustDial(t, named(s, extensions.SSHIdentity{PrivateKeyFile: s.KeyFile}))
	// The agent's others are not a way in for a key that was named.
	stranger := hosttest.NewKey(t, "ed25519")
	stranger.Write(t, filepath.Join(u.home, "stranger"))
	if err := held.RemoveAll(); err != nil {
		t.Fatal(err)
	}
	add(t, held, s.KeyFile, "mine")
	for _, agentToo := range []bool{true, false} {
		u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: "~/stranger", Agent: agentToo}), extensions.KindUnauthorized,
			fingerprint(stranger.Signer.PublicKey()))
	}
	fill(t, u, held, 9)
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
	u.fails(t, h, extensions.KindUnauthorized, "no key to log in", "id_ed25519 does not exist", "id_rsa does not exist",
		"SSH_AUTH_SOCK is not set")
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
		fmt.Sprintf("%q", s.User), filepath.Join(u.home, "id"), fingerprint(stranger.Signer.PublicKey()), "It accepts: publickey, password",
		"authorized_keys")
	for _, method := range []string{"method password", "method keyboard-interactive"} {
		if strings.Contains(s.Log(), method) {
			t.Errorf("%s was tried", method)
		}
	}
	s = sshd(t, hosttest.WithConfig("PasswordAuthentication yes", "AuthenticationMethods publickey,password"))
	u.fails(t, named(s, extensions.SSHIdentity{PrivateKeyFile: s.KeyFile}), extensions.KindUnauthorized, "requires more: password")
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
