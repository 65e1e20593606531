package remote

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// algorithms lists what the host may show, in order: certificates if an authority is known, then the types of
// known keys, so that a host with several keys shows the one we can check. The rest follow, so that a host
// with none of these is reported by its fingerprint and not as a failed negotiation.
func (b *hostBook) algorithms() []string {
	var certs, plain, known []string
	for _, algorithm := range ssh.SupportedAlgorithms().HostKeys {
		if strings.Contains(algorithm, "-cert-") {
			certs = append(certs, algorithm)
		} else {
			plain = append(plain, algorithm)
		}
	}
	for _, e := range slices.Concat(b.keys, b.others) {
		if e.key.Type() == ssh.KeyAlgoRSA {
			known = append(known, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else if slices.Contains(plain, e.key.Type()) {
			known = append(known, e.key.Type())
		}
	}
	usual := []string{ssh.KeyAlgoED25519} // the type that people compare and pin
	order := slices.Concat(known, usual, plain, certs)
	if len(b.cas) > 0 {
		order = slices.Concat(certs, known, usual, plain)
	}
	var out []string
	for _, algorithm := range order {
		if !slices.Contains(out, algorithm) {
			out = append(out, algorithm)
		}
	}
	return out
}

// hostCheck checks one connection's host key. The library calls verify in every key exchange, before it says
// anything about the user.
type hostCheck struct {
	book     *hostBook
	accepted func() // called once, when the key is accepted

	mu      sync.Mutex
	refusal error
	key     ssh.PublicKey // nil until one is accepted
}

// verdict returns the accepted key, or why there is none.
func (c *hostCheck) verdict() (ssh.PublicKey, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.key, c.refusal
}

func (c *hostCheck) verify(_ string, _ net.Addr, key ssh.PublicKey) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.key != nil { // a later exchange of the same connection
		if bytes.Equal(c.key.Marshal(), key.Marshal()) {
			return nil
		}
		return fmt.Errorf("the host changed its key to %s while connected", fingerprint(key))
	}
	if problem := c.book.judge(key, time.Now()); problem != nil {
		c.refusal = problem.refused()
		return problem
	}
	c.key = key
	c.accepted()
	return nil
}

// judge says what is wrong with a host's key; nil if nothing is.
func (b *hostBook) judge(key ssh.PublicKey, now time.Time) *HostKeyError {
	cert, isCert := key.(*ssh.Certificate)
	e := &HostKeyError{
		Host: b.rules.name(), KeyType: bare(key).Type(), Fingerprint: fingerprint(key),
		Line: b.rules.name() + " " + keyText(bare(key)), Tried: b.tried,
	}
	if len(b.rules.files) == 0 { // the rules are arguments alone
		e.Line, e.Argument = keyText(bare(key)), "host_key"
	}
	if isCert {
		e.CAFingerprint = fingerprint(cert.SignatureKey)
	}
	if bad := b.revocation(key); len(bad) > 0 {
		e.Problem, e.Known = HostKeyRevoked, bad
		return e
	}
	known := slices.ContainsFunc(b.keys, func(k entry) bool { return sameKey(k.key, bare(key)) })
	if isCert {
		if cas := signers(b.cas, cert); len(cas) > 0 {
			return b.judgeCertificate(e, cert, cas, now)
		}
		if !known && len(b.cas) > 0 {
			e.Problem, e.Known = HostKeyUntrustedCA, places(b.cas)
			e.Line = markerCA + " " + b.rules.host + " " + keyText(cert.SignatureKey)
			if e.Argument != "" {
				e.Line, e.Argument = keyText(cert.SignatureKey), "host_ca"
			}
			return e
		}
	}
	if known {
		return nil
	}
	switch {
	case len(b.keys) > 0:
		e.Problem, e.Known = HostKeyChanged, places(b.keys)
	case len(b.cas) > 0:
		e.Problem, e.Known = HostKeyNoCertificate, places(b.cas)
	case b.entries == 0:
		e.Problem = HostKeyNoRules
	default:
		e.Problem = HostKeyUnknown
		for _, other := range b.others {
			if sameKey(other.key, bare(key)) {
				e.Detail = fmt.Sprintf("; %s has the same key at another port (%s)", b.rules.host, other.Where())
			}
		}
	}
	return e
}

// judgeCertificate checks a certificate of a trusted authority.
func (b *hostBook) judgeCertificate(e *HostKeyError, cert *ssh.Certificate, cas []entry, now time.Time) *HostKeyError {
	e.Known = places(cas)
	checker := ssh.CertChecker{Clock: func() time.Time { return now }}
	at := uint64(max(now.Unix(), 0))
	switch {
	case cert.CertType != ssh.HostCert:
		e.Problem, e.Detail = HostKeyBadCertificate, "it certifies a user, not a host"
	case len(cert.ValidPrincipals) > 0 && !slices.Contains(cert.ValidPrincipals, b.rules.host):
		e.Problem = HostKeyWrongPrincipal
		e.Detail = fmt.Sprintf("it is for %s, not for %s", cleanList(cert.ValidPrincipals), b.rules.host)
	case cert.ValidBefore != ssh.CertTimeInfinity && at >= cert.ValidBefore:
		e.Problem, e.Detail = HostKeyExpired, "it expired at "+certTime(cert.ValidBefore)
	case at < cert.ValidAfter:
		e.Problem, e.Detail = HostKeyNotYetValid, "it is valid only from "+certTime(cert.ValidAfter)
	default:
		err := checker.CheckCert(b.rules.host, cert)
		if err == nil {
			return nil
		}
		e.Problem, e.Detail = HostKeyBadCertificate, plain(err)
	}
	return e
}

func (b *hostBook) revocation(key ssh.PublicKey) []KnownLine {
	var bad []KnownLine
	for _, r := range b.revoked {
		cert, isCert := key.(*ssh.Certificate)
		if sameKey(r.key, bare(key)) || isCert && sameKey(r.key, cert.SignatureKey) {
			bad = append(bad, r.KnownLine)
		}
	}
	return bad
}

func signers(cas []entry, cert *ssh.Certificate) []entry {
	var out []entry
	for _, ca := range cas {
		if sameKey(ca.key, cert.SignatureKey) {
			out = append(out, ca)
		}
	}
	return out
}

func places(entries []entry) []KnownLine {
	var out []KnownLine
	for _, e := range entries {
		out = append(out, e.KnownLine)
	}
	return out
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

func cleanList(names []string) string {
	const most = 8
	shown := names[:min(len(names), most)]
	text := strings.Join(shown, ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return extensions.Clean(text, 200)
}

// certTime formats a certificate's time; the largest exceed any calendar.
func certTime(seconds uint64) string {
	const farthest = 253402300799 // the end of the year 9999
	if seconds > farthest {
		return "never"
	}
	return time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339)
}
