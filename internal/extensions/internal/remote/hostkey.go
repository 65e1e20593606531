package remote

import (
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// HostKeyProblem says why a host's key was not taken.
type HostKeyProblem string

const (
	// HostKeyUnknown: no rule names this host.
	HostKeyUnknown HostKeyProblem = "unknown"
	// HostKeyNoRules: there is nothing to check any host against: no key is
	// pinned, no authority given, and no known_hosts file has an entry.
	HostKeyNoRules HostKeyProblem = "no-rules"
	// HostKeyChanged: the host is known by another key.
	HostKeyChanged HostKeyProblem = "changed"
	// HostKeyRevoked: the key, or the authority that signed it, is @revoked.
	HostKeyRevoked HostKeyProblem = "revoked"
	// HostKeyWrongPrincipal: the host certificate is for other names.
	HostKeyWrongPrincipal HostKeyProblem = "wrong-principal"
	// HostKeyExpired: the host certificate's time is over.
	HostKeyExpired HostKeyProblem = "expired"
	// HostKeyNotYetValid: the host certificate's time has not come.
	HostKeyNotYetValid HostKeyProblem = "not-yet-valid"
	// HostKeyUntrustedCA: the host certificate is signed by somebody else.
	HostKeyUntrustedCA HostKeyProblem = "untrusted-ca"
	// HostKeyNoCertificate: an authority is known for the host, which showed a bare key.
	HostKeyNoCertificate HostKeyProblem = "no-certificate"
	// HostKeyBadCertificate: the host certificate is not one for hosts, has a
	// critical option, or its signature is wrong.
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

// Where is the entry's place, as a person looks it up.
func (l KnownLine) Where() string {
	if l.Argument != "" {
		return l.Argument
	}
	return fmt.Sprintf("%s:%d", l.File, l.Number)
}

// HostKeyError says that a host's key is not the one it should be. It is
// returned before any authentication was tried, wrapped in an
// *extensions.Error of KindUnauthorized whose remedy names the lines to edit.
type HostKeyError struct {
	Problem HostKeyProblem
	// Host is the name the key is looked up by, as known_hosts writes it:
	// "name", "[name]:2222", or the HostKeyAlias.
	Host string
	// Fingerprint is that of the key the host showed, SHA256:….
	Fingerprint string
	// KeyType is that of the key the host showed: ssh-ed25519, ….
	KeyType string
	// Line is what would make the host trusted: a line of known_hosts or, where
	// the rules are arguments, the value of Argument.
	Line string
	// Argument is "host_key" or "host_ca" where Line is its value, else "".
	Argument string
	// Known are the entries at fault: those to remove or to replace.
	Known []KnownLine
	// CAFingerprint is that of the authority that signed the host's
	// certificate, "" for a bare key.
	CAFingerprint string
	// Detail is what the certificate says instead: its names, its times.
	Detail string
	// Tried are the known_hosts files that were looked into.
	Tried []string
}

func (e *HostKeyError) Error() string {
	shown := fmt.Sprintf("%s key %s", e.KeyType, e.Fingerprint)
	switch e.Problem {
	case HostKeyNoRules:
		return fmt.Sprintf("host key of %s is not known: it shows %s, and there is nothing to check it against (%s)", e.Host, shown, e.tried())
	case HostKeyChanged:
		return fmt.Sprintf("host key of %s has changed: it shows %s, known is %s. Somebody may be between you and the host", e.Host, shown, e.known())
	case HostKeyRevoked:
		return fmt.Sprintf("host key of %s is revoked: it shows %s%s, revoked by %s", e.Host, shown, e.signed(), e.known())
	case HostKeyWrongPrincipal, HostKeyExpired, HostKeyNotYetValid, HostKeyBadCertificate:
		return fmt.Sprintf("host certificate of %s is not good: %s (%s%s)", e.Host, e.Detail, shown, e.signed())
	case HostKeyUntrustedCA:
		return fmt.Sprintf("host certificate of %s is signed by an authority that is not trusted for it: %s (%s)", e.Host, e.CAFingerprint, shown)
	case HostKeyNoCertificate:
		return fmt.Sprintf("host key of %s is not known: it shows %s without a certificate, and only an authority is known (%s)", e.Host, shown, e.known())
	}
	return fmt.Sprintf("host key of %s is not known: it shows %s, and no entry names the host (%s)%s", e.Host, shown, e.tried(), e.Detail)
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

// refused wraps e for the contract, with what to do next.
func (e *HostKeyError) refused() *extensions.Error {
	return extensions.Errorf(extensions.KindUnauthorized, "%w", e).WithRemedy("%s", e.remedy())
}

// checkFingerprint is what makes adding a line safe.
const checkFingerprint = "compare the fingerprint with what `ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub` prints on the host's own console"

func (e *HostKeyError) remedy() string {
	switch e.Problem {
	case HostKeyChanged:
		return fmt.Sprintf("if the host was made anew: %s, then %s", checkFingerprint, e.replacement())
	case HostKeyRevoked:
		return fmt.Sprintf("give the host a new key or certificate; only if the revocation is a mistake, remove %s", e.places())
	case HostKeyWrongPrincipal:
		return fmt.Sprintf("dial the host by a name of its certificate, have it signed for this one, or trust the key itself: %s, then %s", checkFingerprint, e.replacement())
	case HostKeyExpired, HostKeyNotYetValid, HostKeyBadCertificate:
		return fmt.Sprintf("have the host's certificate signed again and check the clocks, or trust the key itself: %s, then %s", checkFingerprint, e.replacement())
	case HostKeyUntrustedCA:
		return "ask who runs the host for the authority's fingerprint; if it is this one, " + e.addition()
	case HostKeyNoCertificate:
		return fmt.Sprintf("give the host a certificate of that authority, or %s and %s", checkFingerprint, e.addition())
	}
	return fmt.Sprintf("%s; if it is the same, %s", checkFingerprint, e.addition())
}

func (e *HostKeyError) addition() string {
	if e.Argument != "" {
		return fmt.Sprintf("set %s = %q", e.Argument, e.Line)
	}
	return "add to known_hosts: " + e.Line
}

// replacement is addition where the entries at fault have to go first.
func (e *HostKeyError) replacement() string {
	if len(e.Known) == 1 && e.Known[0].Argument == e.Argument && e.Argument != "" {
		return e.addition()
	}
	return fmt.Sprintf("remove %s and %s", e.places(), e.addition())
}

// fingerprint is the SHA256 fingerprint of a key; of a certificate, that of
// the key it certifies, which is what ssh-keygen shows.
func fingerprint(key ssh.PublicKey) string { return ssh.FingerprintSHA256(bare(key)) }

// bare is the key a certificate certifies, or the key itself.
func bare(key ssh.PublicKey) ssh.PublicKey {
	if cert, ok := key.(*ssh.Certificate); ok {
		return cert.Key
	}
	return key
}

// keyText is a key as files and arguments write it, without a comment.
func keyText(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}
