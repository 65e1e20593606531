package remote

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// refusesKey dials and wants the problem, told with the host's fingerprint
// and the line to add, before anything was asked of the server.
func refusesKey(t *testing.T, u *me, s *hosttest.Server, h extensions.SSH, problem HostKeyProblem, parts ...string) *HostKeyError {
	t.Helper()
	err := u.fails(t, h, extensions.KindUnauthorized, parts...)
	var e *HostKeyError
	if !errors.As(err, &e) {
		t.Fatalf("not a HostKeyError: %v", err)
	}
	if e.Problem != problem {
		t.Fatalf("the problem is %s, want %s: %v", e.Problem, problem, err)
	}
	if !strings.HasPrefix(e.Fingerprint, "SHA256:") || !strings.Contains(err.Error(), e.Fingerprint) {
		t.Errorf("the fingerprint %q is not told: %v", e.Fingerprint, err)
	}
	if problem != HostKeyRevoked && (e.Line == "" || !strings.Contains(extensions.RemedyOf(err), e.Line)) {
		t.Errorf("the line %q is not told: %s", e.Line, extensions.RemedyOf(err))
	}
	if n := requests(t, s); n != 0 {
		t.Errorf("the server was asked %d times to let us in:\n%s", n, s.Log())
	}
	return e
}

func TestPinnedHostKeyLetsIn(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	h := keyed(s)
	h.HostKey = s.HostKeyLine + " some comment"
	u.mustDial(t, h)
	if requests(t, s) == 0 {
		t.Error("the log that other tests rely on shows no request to log in")
	}
	h.HostKey = s.Address + " " + s.HostKeyLine // as ssh-keyscan prints it
	u.mustDial(t, h)
}

func TestPinnedHostKeyChanged(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	h := keyed(s)
	other := hosttest.NewKey(t, "ed25519")
	h.HostKey = other.Line
	e := refusesKey(t, u, s, h, HostKeyChanged, "has changed", fingerprint(other.Signer.PublicKey()), `set host_key = "`+s.HostKeyLine)
	if e.Line != s.HostKeyLine {
		t.Errorf("the new value of host_key is %q, want %q", e.Line, s.HostKeyLine)
	}
}

func TestPinnedNonsenseIsInvalid(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	ca := hosttest.NewKey(t, "ed25519")
	for _, text := range []string{"ssh-ed25519", "hello", "ssh-ed25519 AAAA", "ssh-rsa " + strings.Fields(s.HostKeyLine)[1],
		keyText(hostCert(t, ca, s.HostKeys[0].Signer.PublicKey(), nil))} {
		h := keyed(s)
		h.HostKey = text
		u.fails(t, h, extensions.KindInvalid, "host_key")
	}
}

func TestKnownHostsUnknownThenAddedLine(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	h := keyed(s)
	known := u.file(t, "known_hosts", "other.example.com "+s.HostKeyLine+"\n")
	e := refusesKey(t, u, s, h, HostKeyUnknown, "no entry is for the host", known)
	u.file(t, "known_hosts", e.Line+"\n")
	u.mustDial(t, h)
}

func TestKnownHostsNothingToCheckAgainst(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	e := refusesKey(t, u, s, keyed(s), HostKeyNoRules, "nothing to check it against", "known_hosts (absent)")
	u.file(t, "known_hosts", e.Line+"\n")
	u.mustDial(t, keyed(s))
}

func TestKnownHostsChanged(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	other := hosttest.NewKey(t, "ed25519")
	known := u.file(t, "known_hosts", fmt.Sprintf("# hosts\n\n[%s]:%d %s\n", s.Address, s.Port, other.Line))
	e := refusesKey(t, u, s, keyed(s), HostKeyChanged, known+":3", fingerprint(other.Signer.PublicKey()))
	if len(e.Known) != 1 || e.Known[0].Number != 3 || e.Known[0].File != known {
		t.Errorf("the entry at fault is %+v", e.Known)
	}
	u.file(t, "known_hosts", e.Line+"\n")
	u.mustDial(t, keyed(s))
}

func TestKnownHostsNamedFileHasToBeThere(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	h := keyed(s)
	h.KnownHosts = filepath.Join(u.home, "nowhere")
	u.fails(t, h, extensions.KindInvalid, "nowhere")
	h.KnownHosts = s.KnownHosts
	u.mustDial(t, h)
	h.KnownHosts = "~/mine"
	write(t, filepath.Join(u.home, "mine"), strings.Join([]string{"[" + s.Address + "]:" + fmt.Sprint(s.Port), s.HostKeyLine}, " "))
	u.mustDial(t, h)
}

func TestKnownHostsRevoked(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	// Revoked wins, wherever in the file it is and though the key is known too.
	known := u.file(t, "known_hosts", fmt.Sprintf("[%s]:%d %s\n@revoked * %s\n", s.Address, s.Port, s.HostKeyLine, s.HostKeyLine))
	refusesKey(t, u, s, keyed(s), HostKeyRevoked, "is revoked", known+":2")
	u.file(t, "known_hosts", fmt.Sprintf("[%s]:%d %s\n@revoked other.example.com %s\n", s.Address, s.Port, s.HostKeyLine, s.HostKeyLine))
	u.mustDial(t, keyed(s))
}

func TestKnownHostsRevokedWinsOverPinned(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	h := keyed(s)
	h.HostKey = s.HostKeyLine
	h.KnownHosts = u.file(t, "revocations", "@revoked * "+s.HostKeyLine+"\n")
	refusesKey(t, u, s, h, HostKeyRevoked, "revocations:1")
}

func TestKnownHostsHashed(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	other := hosttest.NewKey(t, "ed25519")
	known := u.file(t, "known_hosts", fmt.Sprintf("[%s]:%d %s\n", s.Address, s.Port, s.HostKeyLine))
	run(t, "ssh-keygen", "-H", "-f", known)
	u.mustDial(t, keyed(s))
	u.file(t, "known_hosts", fmt.Sprintf("[%s]:%d %s\n", s.Address, s.Port, other.Line))
	run(t, "ssh-keygen", "-H", "-f", known)
	refusesKeyAgain(t, u, keyed(s), HostKeyChanged, known+":1")
	u.file(t, "known_hosts", fmt.Sprintf("[%s]:%d %s\n", "127.0.0.2", s.Port, s.HostKeyLine))
	run(t, "ssh-keygen", "-H", "-f", known)
	refusesKeyAgain(t, u, keyed(s), HostKeyUnknown)
}

// refusesKeyAgain is refusesKey for a server that has let us in before.
func refusesKeyAgain(t *testing.T, u *me, h extensions.SSH, problem HostKeyProblem, parts ...string) {
	t.Helper()
	var e *HostKeyError
	if err := u.fails(t, h, extensions.KindUnauthorized, parts...); !errors.As(err, &e) || e.Problem != problem {
		t.Errorf("want %s: %v", problem, err)
	}
}

// A machine's ports may lead to different hosts (containers, forwarded ports),
// so a key is known for the port it is listed with; a key that is listed for
// port 22 is told, since it makes the line to add easy to trust.
func TestKnownHostsOtherPort(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	known := u.file(t, "known_hosts", fmt.Sprintf("%s %s\n", s.Address, s.HostKeyLine)) // port 22
	e := refusesKey(t, u, s, keyed(s), HostKeyUnknown, "same key at another port", known+":1")
	if want := fmt.Sprintf("[%s]:%d %s", s.Address, s.Port, s.HostKeyLine); e.Line != want {
		t.Errorf("the line is %q, want %q", e.Line, want)
	}
	other := hosttest.NewKey(t, "ed25519")
	u.file(t, "known_hosts", fmt.Sprintf("%s %s\n[%s]:%d %s\n", s.Address, other.Line, s.Address, s.Port, s.HostKeyLine))
	u.mustDial(t, keyed(s))
}

func TestHostWithSeveralKeyTypesIsKnownByOne(t *testing.T) {
	t.Parallel()
	s := sshd(t, hosttest.WithHostKeyTypes("rsa", "ecdsa", "ed25519"))
	for _, key := range s.HostKeys {
		t.Run(key.Signer.PublicKey().Type(), func(t *testing.T) {
			t.Parallel()
			u := newMe(t)
			u.file(t, "known_hosts", fmt.Sprintf("[%s]:%d %s\n", s.Address, s.Port, key.Line))
			u.mustDial(t, keyed(s))
		})
	}
}

func TestKnownKeyTypeNoLongerOffered(t *testing.T) {
	t.Parallel()
	s, u := sshd(t, hosttest.WithHostKeyTypes("ecdsa")), newMe(t)
	h := keyed(s)
	h.HostKey = hosttest.NewKey(t, "ed25519").Line
	refusesKey(t, u, s, h, HostKeyChanged, "ecdsa-sha2-nistp256", "ssh-ed25519")
}

func TestKnownHostsPatterns(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	name := fmt.Sprintf("[%s]:%d", s.Address, s.Port)
	dials := func(line string) error {
		u.file(t, "known_hosts", line+" "+s.HostKeyLine+"\n")
		return u.dial(t, keyed(s))
	}
	for _, line := range []string{"*", "a,b," + name, "[127.0.0.?]:*", "!other,*", strings.ToUpper(name)} {
		if err := dials(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, line := range []string{"!" + name + ",*", "*,!" + name, "[127.0.0.1]:1", "other", "!other"} {
		if err := dials(line); err == nil {
			t.Errorf("%s: it was let in", line)
		}
	}
}

func TestKnownHostsLinesNobodyUnderstands(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	good := fmt.Sprintf("[%s]:%d %s\n", s.Address, s.Port, s.HostKeyLine)
	u.file(t, "known_hosts", "broken\nhost ssh-ed25519 !!!\nhost ssh-future AAAAC3NzaC1mdXR1cmU=\n@revoked * ssh-future AAAACnNzaC1mdXR1cmU=\n"+good)
	u.mustDial(t, keyed(s))
	for _, line := range []string{"@revoked * ssh-ed25519 !!!", "@revoked *", "@trusted * " + s.HostKeyLine, "@revoked * ssh-rsa " +
		strings.Fields(s.HostKeyLine)[1]} {
		u.file(t, "known_hosts", line+"\n"+good)
		u.fails(t, keyed(s), extensions.KindInvalid, "known_hosts:1")
	}
}

func TestJumpHostsOwnKey(t *testing.T) {
	t.Parallel()
	jump, s, u := sshd(t), sshd(t), newMe(t)
	way := func(jumpKey, key string) extensions.SSH {
		j, h := keyed(jump), keyed(s)
		j.HostKey, h.HostKey = jumpKey, key
		h.Jump = []extensions.SSH{j}
		return h
	}
	other := hosttest.NewKey(t, "ed25519").Line
	refusesKey(t, u, jump, way("", s.HostKeyLine), HostKeyNoRules, "jump host", fmt.Sprint(jump.Port))
	refusesKey(t, u, jump, way(other, s.HostKeyLine), HostKeyChanged, "jump host", fmt.Sprint(jump.Port))
	if s.Connections() != 0 {
		t.Error("the host behind the jump host was dialled")
	}
	refusesKey(t, u, s, way(jump.HostKeyLine, other), HostKeyChanged, fmt.Sprint(s.Port))
	u.mustDial(t, way(jump.HostKeyLine, s.HostKeyLine))
}

// TestKnownHostsAsSSHReadsThem compares our verdict with that of ssh(1). The one
// difference is meant: ssh takes a key that is listed without a port for all
// ports, TestKnownHostsOtherPort has why we tell it instead.
func TestKnownHostsAsSSHReadsThem(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("SKIPPED: no ssh")
	}
	ca := hosttest.NewKey(t, "ed25519")
	s, key := certifiedHost(t, ca, nil, "127.0.0.1")
	other := hosttest.NewKey(t, "ed25519")
	name := fmt.Sprintf("[%s]:%d", s.Address, s.Port)
	for i, text := range []string{
		"", name + " " + key.Line, name + " " + other.Line, "* " + key.Line, "[127.*]:* " + key.Line, name + ",!" + name + " " + key.Line,
		"@cert-authority * " + ca.Line, "@cert-authority * " + other.Line, "@cert-authority 127.0.0.1 " + ca.Line,
		"@cert-authority *.1 " + ca.Line, "@cert-authority other " + ca.Line, "* " + key.Line + "\n@revoked * " + key.Line,
		"@revoked other " + key.Line + "\n* " + key.Line, "@cert-authority * " + ca.Line + "\n@revoked * " + ca.Line,
		"@cert-authority * " + ca.Line + "\n@revoked " + name + " " + key.Line, "* " + ca.Line, name + " " + other.Line + "\n" + name + " " +
			key.Line,
		"bad line\n* " + key.Line, "@cert-authority * " + other.Line + "\n* " + key.Line,
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			u := newMe(t)
			h := keyed(s)
			h.KnownHosts = u.file(t, "known", text+"\n")
			ours := u.dial(t, h)
			cmd := exec.CommandContext(t.Context(), program, "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes",
				"-o", "IdentityAgent=none", "-o", "UserKnownHostsFile="+h.KnownHosts, "-o", "GlobalKnownHostsFile=none", "-i", s.KeyFile, "-p",
				fmt.Sprint(s.Port), s.User+"@"+s.Address, "true")
			out, theirs := cmd.CombinedOutput()
			if (ours == nil) != (theirs == nil) {
				t.Errorf("for\n%s\nwe say: %v\nssh says: %v %s", text, ours, theirs, out)
			}
		})
	}
}
