package remote

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

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
		"exits":    {"echo CANARY; echo CANARY >&2; exit 3", "failed (exit status 3)", extensions.KindUnauthorized},
		"nothing":  {"true", "did not print a private key", extensions.KindUnauthorized},
		"garbage":  {"echo CANARY", "did not print a private key", extensions.KindUnauthorized},
		"too much": {"yes CANARY", "printed more than", extensions.KindUnauthorized},
		"before":   {"echo CANARY; cat key", "before the private key", extensions.KindUnauthorized},
		"after":    {"cat key; echo CANARY", "not a user certificate", extensions.KindUnauthorized},
		"two":      {"cat key; cat key.pub; echo CANARY", "more than a private key and one certificate", extensions.KindUnauthorized},
		"broken": {"echo '-----BEGIN OPENSSH PRIVATE KEY-----'; echo CANARYCANARY; echo '-----END OPENSSH PRIVATE KEY-----'",
			"of an unsupported kind", extensions.KindUnauthorized},
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
			write(t, filepath.Join(u.home, "old"), keyText(userCert(t, ca, s.ClientKey.Signer.PublicKey(),
				func(c *ssh.Certificate) { c.ValidBefore = c.ValidAfter + 1 }))+"\n")
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
		pid, err := os.ReadFile(filepath.Join(u.home, "child"))
		return err == nil && strings.HasSuffix(string(pid), "\n")
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
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %s lives on: %s", pid, state)
		}
	}
}
