package remote

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// certifiedHost is a server with a certificate of the authority for its key.
func certifiedHost(t *testing.T, ca hosttest.Key, edit func(*ssh.Certificate), principals ...string) (*hosttest.Server, hosttest.Key) {
	t.Helper()
	key := hosttest.NewKey(t, "ed25519")
	path := write(t, filepath.Join(t.TempDir(), "host-cert.pub"), keyText(hostCert(t, ca, key.Signer.PublicKey(), edit, principals...))+"\n")
	return sshd(t, hosttest.WithHostKey(key), hosttest.WithConfig("HostCertificate "+path)), key
}

func TestHostAuthority(t *testing.T) {
	t.Parallel()
	ca := hosttest.NewKey(t, "ecdsa")
	s, _ := certifiedHost(t, ca, nil, "127.0.0.1", "host.example.com")
	u := newMe(t)
	h := keyed(s)
	h.HostCA = ca.Line
	u.mustDial(t, h)
	for _, pattern := range []string{"*", "127.0.0.*", fmt.Sprintf("[%s]:%d", s.Address, s.Port)} {
		u.file(t, "known_hosts", "@cert-authority "+pattern+" "+ca.Line+"\n")
		u.mustDial(t, keyed(s))
	}
	u.file(t, "known_hosts", "@cert-authority *.example.org "+ca.Line+"\n")
	refusesKeyAgain(t, u, keyed(s), HostKeyUnknown)
}

// An authority's key is not a host's key: a host that shows it bare is unknown.
func TestHostShowsAuthoritysKey(t *testing.T) {
	t.Parallel()
	ca := hosttest.NewKey(t, "ed25519")
	s, u := sshd(t, hosttest.WithHostKey(ca)), newMe(t)
	u.file(t, "known_hosts", "@cert-authority * "+ca.Line+"\n")
	refusesKey(t, u, s, keyed(s), HostKeyNoCertificate, "without a certificate")
}

func TestHostCertificateWrongPrincipal(t *testing.T) {
	t.Parallel()
	ca := hosttest.NewKey(t, "ed25519")
	s, _ := certifiedHost(t, ca, nil, "host.example.com")
	u := newMe(t)
	h := keyed(s)
	h.HostCA = ca.Line
	refusesKey(t, u, s, h, HostKeyWrongPrincipal, "it is for host.example.com, not for 127.0.0.1", fingerprint(ca.Signer.PublicKey()),
		"remove host_ca and set host_key = ")
}

func TestHostCertificateTimes(t *testing.T) {
	t.Parallel()
	ca := hosttest.NewKey(t, "ed25519")
	u := newMe(t)
	past := uint64(time.Now().Add(-time.Minute).Unix())
	s, _ := certifiedHost(t, ca, func(c *ssh.Certificate) { c.ValidBefore = past }, "127.0.0.1")
	known := u.file(t, "known_hosts", "@cert-authority * "+ca.Line+"\n")
	refusesKey(t, u, s, keyed(s), HostKeyExpired, "it expired at "+certTime(past), known+":1")
	future := uint64(time.Now().Add(time.Hour).Unix())
	s, _ = certifiedHost(t, ca, func(c *ssh.Certificate) { c.ValidAfter, c.ValidBefore = future, ssh.CertTimeInfinity }, "127.0.0.1")
	refusesKey(t, u, s, keyed(s), HostKeyNotYetValid, certTime(future))
	s, _ = certifiedHost(t, ca, func(c *ssh.Certificate) { c.ValidAfter, c.ValidBefore = 0, ssh.CertTimeInfinity }, "127.0.0.1")
	u.mustDial(t, keyed(s))
}

func TestHostCertificateOfAnotherAuthority(t *testing.T) {
	t.Parallel()
	ca, other := hosttest.NewKey(t, "ed25519"), hosttest.NewKey(t, "ed25519")
	s, key := certifiedHost(t, ca, nil, "127.0.0.1")
	u := newMe(t)
	u.file(t, "known_hosts", "@cert-authority * "+other.Line+"\n")
	e := refusesKey(t, u, s, keyed(s), HostKeyUntrustedCA, fingerprint(ca.Signer.PublicKey()), "@cert-authority")
	if e.CAFingerprint != fingerprint(ca.Signer.PublicKey()) {
		t.Errorf("the authority is %s", e.CAFingerprint)
	}
	u.file(t, "known_hosts", e.Line+"\n")
	u.mustDial(t, keyed(s))
	h := keyed(s)
	h.HostCA = other.Line
	err := u.fails(t, h, extensions.KindUnauthorized, `set host_ca = "`+ca.Line)
	if !errors.As(err, &e) || e.Argument != "host_ca" {
		t.Errorf("the argument to set is %+v", e)
	}
	// The key itself is known: what its certificate says does not matter.
	u.file(t, "known_hosts", fmt.Sprintf("@cert-authority * %s\n[%s]:%d %s\n", other.Line, s.Address, s.Port, key.Line))
	u.mustDial(t, keyed(s))
}

func TestHostCertificateRevoked(t *testing.T) {
	t.Parallel()
	ca := hosttest.NewKey(t, "ed25519")
	for _, who := range []string{"authority", "host"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			s, key := certifiedHost(t, ca, nil, "127.0.0.1")
			u := newMe(t)
			line := ca.Line
			if who == "host" {
				line = key.Line
			}
			known := u.file(t, "known_hosts", "@cert-authority * "+ca.Line+"\n@revoked * "+line+"\n")
			refusesKey(t, u, s, keyed(s), HostKeyRevoked, known+":2", fingerprint(ca.Signer.PublicKey()))
		})
	}
}
