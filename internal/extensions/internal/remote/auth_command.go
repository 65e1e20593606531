package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	// commandTimeout bounds a credential command.
	commandTimeout = 30 * time.Second
	// maxCredential bounds what it may print, in bytes.
	maxCredential = 64 << 10
	// credentialMargin is how long before its end a certificate is no longer used: the host's clock may be
	// ahead of ours.
	credentialMargin = 30 * time.Second
)

// credential is what a credential command printed: one private key in PEM or OpenSSH format without a
// passphrase and, after it, optionally one user certificate for that key as a line of authorized_keys:
//
//	-----BEGIN OPENSSH PRIVATE KEY-----
//	…
//	-----END OPENSSH PRIVATE KEY-----
//	ssh-ed25519-cert-v01@openssh.com AAAA… comment
//
// Empty lines and lines that start with # are skipped; anything else is an error. A credential with a
// certificate stays in memory until shortly before the certificate ends, and serves every host that names the
// same command. Without a certificate, each connection fetches its own.
type credential struct {
	signer ssh.AlgorithmSigner
	cert   *ssh.Certificate // nil = a bare key
}

// fresh reports whether the credential may still be offered.
func (c *credential) fresh(now time.Time) bool {
	return c != nil && c.cert != nil && !expired(c.cert, now.Add(credentialMargin))
}

// credentials caches what commands printed, by command. Two hosts that ask at once run the command once.
var credentials credentialStore

type credentialStore struct {
	mu    sync.Mutex
	slots map[string]*credentialSlot
}

type credentialSlot struct {
	turn chan struct{} // holds one token
	last *credential
}

func (s *credentialStore) slot(argv []string) *credentialSlot {
	key, err := json.Marshal(argv)
	if err != nil { // strings cannot fail
		key = []byte(strings.Join(argv, "\x00"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots == nil {
		s.slots = map[string]*credentialSlot{}
	}
	slot := s.slots[string(key)]
	if slot == nil {
		slot = &credentialSlot{turn: make(chan struct{}, 1)}
		slot.turn <- struct{}{}
		s.slots[string(key)] = slot
	}
	return slot
}

// get returns the cached credential while it is fresh, else a new one.
func (s *credentialSlot) get(ctx context.Context, argv []string) (c *credential, kept bool, err error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	defer func() { s.turn <- struct{}{} }()
	if s.last.fresh(time.Now()) {
		return s.last, true, nil
	}
	s.last = nil
	c, err = runCredential(ctx, argv)
	if err == nil && c.fresh(time.Now()) {
		s.last = c
	}
	return c, false, err
}

// drop forgets a credential that a host refused.
func (s *credentialSlot) drop(c *credential) {
	<-s.turn
	if s.last == c {
		s.last = nil
	}
	s.turn <- struct{}{}
}

func (l *login) fromCommand() (candidate, error) {
	defer l.patience.aside(2 * commandTimeout)() // another login may be fetching it first
	c, kept, err := credentials.slot(l.plan.command).get(l.patience.ctx, l.plan.command)
	if err != nil {
		switch {
		case errors.Is(context.Cause(l.patience.ctx), errSlow):
			return candidate{}, commandFailed(extensions.KindUnreachable, l.plan.command, "has too many waiting")
		case l.patience.over():
			return candidate{}, l.patience.failure(l.hop.label)
		}
		return candidate{}, err
	}
	l.mu.Lock()
	l.fetched, l.hasSaved = c, kept
	l.mu.Unlock()
	return candidate{signer: c.signer, source: "credential of " + commandName(l.plan.command)}, nil
}

// forget makes the next login fetch a new credential. It reports whether the refused one was cached by an
// earlier login: then a new one may succeed.
func (l *login) forget() bool {
	l.mu.Lock()
	c, kept := l.fetched, l.hasSaved
	l.mu.Unlock()
	if c == nil {
		return false
	}
	credentials.slot(l.plan.command).drop(c)
	return kept
}

func commandName(argv []string) string { return extensions.Clean(argv[0], 120) }

// runCredential runs the command once. No error contains its output.
func runCredential(ctx context.Context, argv []string) (*credential, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	out := &bounded{limit: maxCredential}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout = out
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	err := cmd.Run()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, extensions.Errorf(extensions.KindInterrupted, "the credential command %s was abandoned: %w", commandName(argv), ctx.Err())
	case ctx.Err() != nil:
		return nil, commandFailed(extensions.KindUnreachable, argv, fmt.Sprintf("gave no credential within %s", commandTimeout))
	case out.over:
		return nil, commandFailed(extensions.KindUnauthorized, argv, fmt.Sprintf("printed more than %d bytes", maxCredential))
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return nil, commandFailed(extensions.KindUnauthorized, argv, fmt.Sprintf("failed (%s)", exit.ProcessState))
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // a helper it left behind may hold the pipe
		return nil, extensions.Errorf(extensions.KindInvalid, "the credential command cannot be run: %w", err).
			WithRemedy("check the path of the command in the host's identity").At("ssh.identity.command")
	}
	c, why := parseCredential(out.kept.Bytes())
	if why != "" {
		return nil, commandFailed(extensions.KindUnauthorized, argv, why)
	}
	return c, nil
}

func commandFailed(kind extensions.Kind, argv []string, why string) *extensions.Error {
	return extensions.Errorf(kind, "the credential command %s %s", commandName(argv), why).
		WithRemedy("run the command by hand: it must print a private key, optionally followed by a certificate line, " +
			"and must not prompt").At("ssh.identity.command")
}

// parseCredential returns what is wrong as text instead of an error, so that no library's message can carry
// part of the key.
func parseCredential(out []byte) (*credential, string) {
	block, rest := pem.Decode(out)
	if block == nil {
		return nil, "did not print a private key"
	}
	if before, _, _ := bytes.Cut(out, []byte("-----BEGIN")); len(meaningful(before)) > 0 {
		return nil, "printed something before the private key"
	}
	key, err := ssh.ParsePrivateKey(pem.EncodeToMemory(block))
	if encrypted := (*ssh.PassphraseMissingError)(nil); errors.As(err, &encrypted) {
		return nil, "printed a private key with a passphrase"
	}
	signer, ok := key.(ssh.AlgorithmSigner)
	if err != nil || !ok {
		return nil, "printed a private key of an unsupported kind"
	}
	lines := meaningful(rest)
	switch len(lines) {
	case 0:
		return &credential{signer: signer}, ""
	case 1:
		return certified(signer, lines[0])
	}
	return nil, "printed more than a private key and one certificate"
}

func certified(signer ssh.AlgorithmSigner, line string) (*credential, string) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	cert, ok := key.(*ssh.Certificate)
	if err != nil || !ok || cert.CertType != ssh.UserCert {
		return nil, "printed something after the private key that is not a user certificate"
	}
	if expired(cert, time.Now()) {
		return nil, "printed a certificate that expired at " + certTime(cert.ValidBefore)
	}
	both, err := ssh.NewCertSigner(cert, signer)
	if err != nil {
		return nil, "printed a certificate for another key"
	}
	able, ok := both.(ssh.AlgorithmSigner)
	if !ok {
		return nil, "printed a key that cannot sign"
	}
	return &credential{signer: able, cert: cert}, ""
}

// meaningful returns the lines that are neither empty nor comments.
func meaningful(text []byte) []string {
	var out []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// bounded keeps what fits; too much output ends the command by a failed write. It has no ReadFrom, which
// would bypass the limit.
type bounded struct {
	kept  bytes.Buffer
	limit int
	over  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > b.limit {
		b.over = true
		return 0, errors.New("too much output")
	}
	return b.kept.Write(p)
}
