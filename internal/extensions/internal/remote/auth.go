package remote

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// loginPlan says which keys may be offered to a host. Passwords and questions never are, since nobody is
// there to answer.
type loginPlan struct {
	files []identityFile
	certs []identityFile
	// agent is the socket of an agent; "" = none.
	agent string
	// agentNamed says that an argument named the agent, so it must answer.
	agentNamed bool
	// only limits the offer to the files' keys, whether a file or the agent holds them. Servers stop
	// listening after a few keys (MaxAuthTries 6), which a full agent exceeds.
	only    bool
	command []string
}

type identityFile struct {
	path  string
	named bool // an argument named it: it must exist and be usable
}

// login is the login to one hop, and its outcome.
type login struct {
	plan     loginPlan
	hop      hop
	patience *patience

	mu       sync.Mutex
	closers  []io.Closer
	err      error    // why there is nothing to offer
	offered  []string // keys the host was asked about, in order
	skipped  []string // what was not offered, and why
	methods  []string // methods the host accepts
	unsigned error    // why a key that the host would accept did not sign
	partial  bool     // a key was accepted, and the host wants something more
	fetched  *credential
	hasSaved bool // the credential was cached by an earlier login
}

// done closes what signing needed.
func (l *login) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.closers {
		_ = c.Close()
	}
	l.closers = nil
}

func (l *login) problem() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// observe learns from the library what the host wants.
func (l *login) observe(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.methods = c.AllowedMethods
	l.partial = len(c.PartialSuccessMethods) > 0
	return nil, nil
}

// signers collects the keys to offer. It is called once the host's key was accepted: no agent is asked and no
// credential fetched for an unknown host.
func (l *login) signers() ([]ssh.Signer, error) {
	keys, err := l.gather()
	if err != nil {
		l.mu.Lock()
		l.err = err
		l.mu.Unlock()
		return nil, err
	}
	var out []ssh.Signer
	for _, k := range keys {
		out = append(out, &offer{AlgorithmSigner: k.signer, label: k.label(), login: l})
	}
	return out, nil
}

func (l *login) gather() ([]candidate, error) {
	if len(l.plan.command) > 0 {
		k, err := l.fromCommand()
		if err != nil {
			return nil, err
		}
		return []candidate{k}, nil
	}
	agentKeys, err := l.fromAgent()
	if err != nil {
		return nil, err
	}
	filed, err := l.fromFiles(agentKeys)
	if err != nil {
		return nil, err
	}
	if l.plan.only && len(l.plan.files) == 0 { // only a certificate was named: the agent has its key
		keys, err := l.withCertificates(agentKeys)
		return slices.DeleteFunc(keys, func(k candidate) bool { return !k.certified }), err
	}
	return l.withCertificates(order(agentKeys, filed, l.plan.only))
}

// candidate is a key that may be offered.
type candidate struct {
	signer    ssh.AlgorithmSigner
	source    string // "/home/me/.ssh/id_ed25519", "agent (comment)", …
	agent     bool
	certified bool // a file certifies it
}

func (k candidate) label() string {
	return fmt.Sprintf("%s %s", k.source, fingerprint(realKey(k.signer.PublicKey())))
}

// order sorts keys as ssh does: first keys of files that the agent holds, then the agent's others, then keys
// that only files hold.
func order(agentKeys, filed []candidate, only bool) []candidate {
	if only {
		return filed
	}
	var first, rest []candidate
	for _, k := range filed {
		if k.agent {
			first = append(first, k)
		} else {
			rest = append(rest, k)
		}
	}
	for _, k := range agentKeys {
		if !slices.ContainsFunc(first, func(f candidate) bool { return sameKey(f.signer.PublicKey(), k.signer.PublicKey()) }) {
			first = append(first, k)
		}
	}
	return append(first, rest...)
}

// realKey returns an agent's key under its own type: the agent's type tells neither whether it is a
// certificate nor for which key.
func realKey(key ssh.PublicKey) ssh.PublicKey {
	if parsed, err := ssh.ParsePublicKey(key.Marshal()); err == nil {
		return parsed
	}
	return key
}

// offer is a key on its way to the host. It records what was asked, and grants the time that signing takes (a
// touch, a question at the agent).
type offer struct {
	ssh.AlgorithmSigner
	label string
	login *login
	asked sync.Once
}

// PublicKey returns what the library asks the host about.
func (s *offer) PublicKey() ssh.PublicKey {
	s.asked.Do(func() {
		s.login.mu.Lock()
		s.login.offered = append(s.login.offered, s.label)
		s.login.mu.Unlock()
	})
	return s.AlgorithmSigner.PublicKey()
}

// Algorithms returns those the key may sign with: never SHA-1.
func (s *offer) Algorithms() []string {
	if bare(realKey(s.AlgorithmSigner.PublicKey())).Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{bare(realKey(s.AlgorithmSigner.PublicKey())).Type()}
}

func (s *offer) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	// The agent is cut off first: its silence is not the host's.
	defer s.login.patience.aside(signingTimeout + agentGrace)()
	defer time.AfterFunc(signingTimeout, s.login.done).Stop()
	signature, err := s.AlgorithmSigner.SignWithAlgorithm(rand, data, algorithm)
	if err != nil {
		s.login.mu.Lock()
		s.login.unsigned = extensions.Errorf(extensions.KindUnauthorized, "%s accepts a key that does not sign: %s: %s", s.login.hop.label,
			s.label, plain(err)).
			WithRemedy("confirm or touch the key when the agent asks, or `ssh-add` it again")
		s.login.mu.Unlock()
	}
	return signature, err
}

// refused says why the host rejected the login after its own key was accepted.
func (l *login) refused(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := err.Error()
	tooMany := strings.Contains(text, "Too many authentication failures")
	sentAway := strings.Contains(text, "ssh: disconnect, reason") && len(l.offered) > 0
	switch {
	case l.unsigned != nil:
		return l.unsigned
	case sentAway && !tooMany:
		return extensions.Errorf(extensions.KindUnauthorized, "%s refused user %q (%s) after these were offered: %s", l.hop.label, l.hop.user,
			plain(err), strings.Join(l.offered, ", ")).
			WithRemedy("check the log of sshd on the host for the user")
	case !tooMany && !strings.Contains(text, "unable to authenticate") && !strings.Contains(text, "no common public key signature algorithm"):
		return extensions.Errorf(extensions.KindUnreachable, "the connection to %s was lost while logging in: %s", l.hop.label, plain(err)).
			WithRemedy("check the log of sshd on the host; try again if it was busy")
	}
	switch {
	case l.partial:
		return extensions.Errorf(extensions.KindUnauthorized, "%s accepts the key of user %q but requires more: %s. sandboxer uses keys only",
			l.hop.label, l.hop.user, l.wants()).
			WithRemedy("let the user log in with a key alone (AuthenticationMethods publickey)")
	case len(l.offered) == 0:
		return extensions.Errorf(extensions.KindUnauthorized, "no key to log in to %s as user %q%s", l.hop.label, l.hop.user, l.left()).
			WithRemedy("set one in the host's `identity`, start an agent and `ssh-add` a key, or create one with ssh-keygen")
	case tooMany:
		return extensions.Errorf(extensions.KindUnauthorized, "%s stopped listening after %d keys for user %q (MaxAuthTries); offered: %s%s",
			l.hop.label, len(l.offered), l.hop.user, strings.Join(l.offered, ", "), l.left()).
			WithRemedy("name the one key in the host's `identity` (private_key_file, with `agent = true` where the agent holds it): then only " +
				"that is offered")
	}
	return extensions.Errorf(extensions.KindUnauthorized, "%s refused the login of user %q; offered: %s%s. It accepts: %s",
		l.hop.label, l.hop.user, strings.Join(l.offered, ", "), l.left(), l.wants()).
		WithRemedy("check the user, and add the public key to that user's ~/.ssh/authorized_keys on the host, or let the host trust the " +
			"certificate's CA")
}

func (l *login) wants() string {
	if len(l.methods) == 0 {
		return "nothing it names"
	}
	return extensions.Clean(strings.Join(l.methods, ", "), 120)
}

func (l *login) left() string {
	if len(l.skipped) == 0 {
		return ""
	}
	return " (not offered: " + strings.Join(l.skipped, "; ") + ")"
}

func (l *login) skip(format string, args ...any) {
	l.mu.Lock()
	l.skipped = append(l.skipped, fmt.Sprintf(format, args...))
	l.mu.Unlock()
}
