package remote

import (
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// HostKeyProblem says why a host's key was rejected.
type HostKeyProblem string

const (
	// HostKeyUnknown: no rule names this host.
	HostKeyUnknown HostKeyProblem = "unknown"
	// HostKeyNoRules: there is nothing to check any host against: no key is pinned, no authority given, and
	// no known_hosts file has an entry.
	HostKeyNoRules HostKeyProblem = "no-rules"
	// HostKeyChanged: the host is known by another key.
	HostKeyChanged HostKeyProblem = "changed"
	// HostKeyRevoked: the key, or the authority that signed it, is @revoked.
	HostKeyRevoked HostKeyProblem = "revoked"
	// HostKeyWrongPrincipal: the host certificate is for other names.
	HostKeyWrongPrincipal HostKeyProblem = "wrong-principal"
	// HostKeyExpired: the host certificate has expired.
	HostKeyExpired HostKeyProblem = "expired"
	// HostKeyNotYetValid: the host certificate is not valid yet.
	HostKeyNotYetValid HostKeyProblem = "not-yet-valid"
	// HostKeyUntrustedCA: another authority signed the host certificate.
	HostKeyUntrustedCA HostKeyProblem = "untrusted-ca"
	// HostKeyNoCertificate: the host has a known authority but showed a bare key.
	HostKeyNoCertificate HostKeyProblem = "no-certificate"
	// HostKeyBadCertificate: the host certificate is not for hosts, has a critical option, or has a wrong
	// signature.
	HostKeyBadCertificate HostKeyProblem = "bad-certificate"
)

// KnownLine is an entry that a host's key was compared with.
type KnownLine struct {
	File        string // "" for an argument: host_key or host_ca
	Number      int    // from 1; 0 for an argument
	Argument    string // "host_key", "host_ca", or "" for a line of a file
	Fingerprint string // SHA256:…
	Type        string // ssh-ed25519, …
}

// Where returns the entry's place, as a person looks it up.
func (l KnownLine) Where() string {
	if l.Argument != "" {
		return l.Argument
	}
	return fmt.Sprintf("%s:%d", l.File, l.Number)
}

// HostKeyError says that a host's key is not the right one. It is returned before any authentication, wrapped
// in an *extensions.Error of KindUnauthorized whose remedy names the lines to edit.
type HostKeyError struct {
	Problem HostKeyProblem
	// Host is the name the key is looked up by, as known_hosts writes it: "name", "[name]:2222", or the
	// HostKeyAlias.
	Host string
	// Fingerprint is that of the key the host showed, SHA256:….
	Fingerprint string
	// KeyType is that of the key the host showed: ssh-ed25519, ….
	KeyType string
	// Line would make the host trusted: a line of known_hosts or, if the rules are arguments, the value of
	// Argument.
	Line string
	// Argument is "host_key" or "host_ca" if Line is its value, else "".
	Argument string
	// Known are the entries at fault, to remove or replace.
	Known []KnownLine
	// CAFingerprint is that of the authority that signed the host's
	// certificate, "" for a bare key.
	CAFingerprint string
	// Detail is what the certificate says instead: its names, its times.
	Detail string
	// Tried are the known_hosts files that were read.
	Tried []string
}

func (e *HostKeyError) Error() string {
	shown := fmt.Sprintf("%s key %s", e.KeyType, e.Fingerprint)
	switch e.Problem {
	case HostKeyNoRules:
		return fmt.Sprintf("host key of %s is unknown: it shows %s, and there is nothing to check it against (%s)", e.Host, shown, e.tried())
	case HostKeyChanged:
		return fmt.Sprintf("host key of %s has changed: it shows %s, known is %s. Someone may be intercepting the connection", e.Host, shown,
			e.known())
	case HostKeyRevoked:
		return fmt.Sprintf("host key of %s is revoked: it shows %s%s, revoked by %s", e.Host, shown, e.signed(), e.known())
	case HostKeyWrongPrincipal, HostKeyExpired, HostKeyNotYetValid, HostKeyBadCertificate:
		return fmt.Sprintf("host certificate of %s is invalid: %s (%s%s)", e.Host, e.Detail, shown, e.signed())
	case HostKeyUntrustedCA:
		return fmt.Sprintf("host certificate of %s is signed by a CA that is not trusted for it: %s (%s)", e.Host, e.CAFingerprint, shown)
	case HostKeyNoCertificate:
		return fmt.Sprintf("host key of %s is unknown: it shows %s without a certificate, and only a CA is known (%s)", e.Host, shown, e.known())
	}
	return fmt.Sprintf("host key of %s is unknown: it shows %s, and no entry is for the host (%s)%s", e.Host, shown, e.tried(), e.Detail)
}

func (e *HostKeyError) signed() string {
	if e.CAFingerprint == "" {
		return ""
	}
	return ", signed by " + e.CAFingerprint
}

func (e *HostKeyError) known() string {
	var parts []string
	for _, k := range e.Known {
		parts = append(parts, fmt.Sprintf("%s %s (%s)", k.Type, k.Fingerprint, k.Where()))
	}
	if len(parts) == 0 {
		return "no key"
	}
	return strings.Join(parts, ", ")
}

func (e *HostKeyError) tried() string {
	if len(e.Tried) == 0 {
		return "no known_hosts file"
	}
	return strings.Join(e.Tried, ", ")
}

// places lists where the entries at fault are.
func (e *HostKeyError) places() string {
	var parts []string
	for _, k := range e.Known {
		parts = append(parts, k.Where())
	}
	return strings.Join(parts, ", ")
}

// refused wraps e for the contract, with a remedy.
func (e *HostKeyError) refused() *extensions.Error {
	return extensions.Errorf(extensions.KindUnauthorized, "%w", e).WithRemedy("%s", e.remedy())
}

// checkFingerprint is what makes adding a line safe.
const checkFingerprint = "compare the fingerprint with what `ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub` prints on the host's own console"

func (e *HostKeyError) remedy() string {
	switch e.Problem {
	case HostKeyChanged:
		return fmt.Sprintf("if the host was rebuilt: %s, then %s", checkFingerprint, e.replacement())
	case HostKeyRevoked:
		return fmt.Sprintf("give the host a new key or certificate; remove %s only if the revocation is a mistake", e.places())
	case HostKeyWrongPrincipal:
		return fmt.Sprintf("dial the host by a name of its certificate, have it signed for this one, or trust the key itself: %s, then %s",
			checkFingerprint, e.replacement())
	case HostKeyExpired, HostKeyNotYetValid, HostKeyBadCertificate:
		return fmt.Sprintf("have the host's certificate signed again and check the clocks, or trust the key itself: %s, then %s",
			checkFingerprint, e.replacement())
	case HostKeyUntrustedCA:
		return "ask the host's owner for the CA's fingerprint; if it is this one, " + e.addition()
	case HostKeyNoCertificate:
		return fmt.Sprintf("give the host a certificate of that CA, or %s and %s", checkFingerprint, e.addition())
	}
	return fmt.Sprintf("%s; if it is the same, %s", checkFingerprint, e.addition())
}

func (e *HostKeyError) addition() string {
	if e.Argument != "" {
		return fmt.Sprintf("set %s = %q", e.Argument, e.Line)
	}
	return "add to known_hosts: " + e.Line
}

// replacement is addition if the entries at fault must go first.
func (e *HostKeyError) replacement() string {
	if len(e.Known) == 1 && e.Known[0].Argument == e.Argument && e.Argument != "" {
		return e.addition()
	}
	return fmt.Sprintf("remove %s and %s", e.places(), e.addition())
}

// fingerprint returns the SHA256 fingerprint of a key or, as ssh-keygen does, of the key that a certificate
// certifies.
func fingerprint(key ssh.PublicKey) string { return ssh.FingerprintSHA256(bare(key)) }

// bare returns the key a certificate certifies, or the key itself.
func bare(key ssh.PublicKey) ssh.PublicKey {
	if cert, ok := key.(*ssh.Certificate); ok {
		return cert.Key
	}
	return key
}

// keyText returns a key as files and arguments write it, without a comment.
func keyText(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}
