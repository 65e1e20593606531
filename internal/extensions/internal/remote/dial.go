package remote

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// hop is one machine to connect to, with all its settings resolved.
type hop struct {
	label   string // its name in messages: user@host:port
	host    string // name or address without brackets
	port    int
	user    string
	network string        // tcp, tcp4 or tcp6
	timeout time.Duration // to connect and exchange keys, and again to log in
	rules   hostRules
	login   loginPlan
	hint    string // the source of the address, if that may be the mistake
}

func (h hop) address() string { return net.JoinHostPort(h.host, strconv.Itoa(h.port)) }

// extend connects to the hop through the existing hops, and logs in.
func (c *chain) extend(h hop) error {
	book, err := h.rules.open()
	if err != nil {
		return err
	}
	c.step(h.timeout, stageConnect)
	conn, err := c.connect(h)
	if err != nil {
		return err
	}
	c.reach(stageKeys)
	first := &preface{Conn: conn}
	check := &hostCheck{book: book}
	auth := &login{plan: h.login, hop: h, patience: c.patience}
	defer auth.done()
	check.accepted = func() { c.step(h.timeout, stageLogin) }
	client, err := handshake(first, h, check, auth)
	if err != nil {
		return c.explain(h, first, check, auth, err)
	}
	c.clients = append(c.clients, client)
	c.hostKey, _ = check.verdict()
	c.via = h.label
	return nil
}

func handshake(conn net.Conn, h hop, check *hostCheck, auth *login) (*ssh.Client, error) {
	known := ssh.SupportedAlgorithms() // the library's defaults still include SHA-1 key exchanges
	config := &ssh.ClientConfig{
		Config:            ssh.Config{KeyExchanges: known.KeyExchanges, Ciphers: known.Ciphers, MACs: known.MACs},
		User:              h.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeysCallback(auth.signers)},
		AuthCallback:      auth.observe,
		HostKeyCallback:   check.verify,
		HostKeyAlgorithms: check.book.algorithms(),
		ClientVersion:     "SSH-2.0-sandboxer",
	}
	sshConn, channels, requests, err := ssh.NewClientConn(conn, h.address(), config)
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(sshConn, channels, requests), nil
}

// connect opens the byte stream to the hop.
func (c *chain) connect(h hop) (net.Conn, error) {
	if len(c.clients) > 0 {
		return c.connectThrough(c.clients[len(c.clients)-1], h)
	}
	dialer := net.Dialer{KeepAlive: 15 * time.Second}
	conn, err := dialer.DialContext(c.ctx, h.network, h.address())
	if err != nil {
		if c.over() {
			return nil, c.failure(h.label)
		}
		return nil, notReached(h, err)
	}
	c.hold(conn)
	return conn, nil
}

func (c *chain) connectThrough(jump *ssh.Client, h hop) (net.Conn, error) {
	c.reach(stageThrough)
	conn, err := jump.DialContext(c.ctx, "tcp", h.address())
	if err == nil {
		return conn, nil
	}
	if c.over() {
		return nil, c.failure(h.label)
	}
	var refused *ssh.OpenChannelError
	if !errors.As(err, &refused) {
		return nil, extensions.Errorf(extensions.KindUnreachable, "the connection to jump host %s was lost while it connected to %s: %s", c.via,
			h.label, plain(err))
	}
	if refused.Reason == ssh.Prohibited {
		return nil, extensions.Errorf(extensions.KindUnauthorized, "jump host %s does not allow a connection to %s: %s", c.via, h.label,
			plain(err)).
			WithRemedy("allow it on the jump host (AllowTcpForwarding, PermitOpen and the key's options), or use another jump host")
	}
	return nil, extensions.Errorf(extensions.KindUnreachable, "jump host %s cannot connect to %s: %s", c.via, h.label, plain(err)).
		WithRemedy("check the address as seen from the jump host, and that sshd listens there")
}

// notReached says why there is no TCP connection.
func notReached(h hop, err error) *extensions.Error {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return extensions.Errorf(extensions.KindUnreachable, "the name %s cannot be resolved: %w", h.host, err).
			WithRemedy("check the address of the host%s, and this machine's DNS", h.hint)
	case errors.Is(err, syscall.ECONNREFUSED):
		return extensions.Errorf(extensions.KindUnreachable, "nothing listens at %s: %w", h.address(), err).
			WithRemedy("check the port, and that sshd runs on the host")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return extensions.Errorf(extensions.KindUnreachable, "no route to %s: %w", h.address(), err).
			WithRemedy("check the address and this machine's routes; a host in a private network needs a `jump` host or a VPN")
	}
	return extensions.Errorf(extensions.KindUnreachable, "%s cannot be reached: %w", h.address(), err).
		WithRemedy("check that the host is up and its address is right")
}

// explain turns a handshake's failure into an error that a person can act on.
func (c *chain) explain(h hop, first *preface, check *hostCheck, auth *login, err error) error {
	key, refusal := check.verdict()
	switch {
	case refusal != nil:
		return refusal
	case auth.problem() != nil:
		return auth.problem()
	case c.over():
		return c.failure(h.label)
	case key != nil:
		c.stale = auth.forget()
		return auth.refused(err)
	}
	var none *ssh.AlgorithmNegotiationError
	if errors.As(err, &none) {
		return extensions.Errorf(extensions.KindUnsupported, "%s and sandboxer have no %s in common: it offers %s", h.label, none.What,
			extensions.Clean(strings.Join(none.RequestedAlgorithms, ", "), 300)).
			WithRemedy("update the host's sshd, or allow current algorithms in its sshd_config")
	}
	if said := first.garbage(); said != "" {
		return extensions.Errorf(extensions.KindUnreachable, "the server at %s is not an SSH server, or refuses to talk now: it says %q (%s)",
			h.label, said, plain(err)).
			WithRemedy("check address and port; a busy sshd refuses connections above its MaxStartups")
	}
	return extensions.Errorf(extensions.KindUnreachable, "the SSH handshake with %s failed: %s", h.label, plain(err)).
		WithRemedy("check that sshd listens there and does not refuse this address; its log says why")
}

func viaJump(h hop, err error) error {
	var e *extensions.Error
	if !errors.As(err, &e) {
		return err
	}
	wrapped := *e
	wrapped.Err = fmt.Errorf("jump host %s: %w", h.label, e.Err)
	return &wrapped
}

// plain returns the text of an error that may quote the remote side.
func plain(err error) string {
	return extensions.Clean(strings.TrimPrefix(err.Error(), "ssh: handshake failed: "), 300)
}

// preface keeps the first bytes a server sends, to tell what it is if not SSH.
type preface struct {
	net.Conn
	mu   sync.Mutex
	head []byte
}

const prefaceLimit = 256

func (p *preface) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	p.mu.Lock()
	if room := prefaceLimit - len(p.head); room > 0 {
		p.head = append(p.head, b[:min(n, room)]...)
	}
	p.mu.Unlock()
	return n, err
}

// garbage returns what came before or instead of an SSH version line.
func (p *preface) garbage() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.HasPrefix(p.head, []byte("SSH-")) {
		return ""
	}
	head, _, _ := bytes.Cut(p.head, []byte("\nSSH-"))
	return extensions.Clean(strings.ToValidUTF8(string(bytes.TrimSpace(head)), "\ufffd"), 120)
}
