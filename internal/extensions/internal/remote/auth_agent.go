package remote

import (
	"context"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	// agentGrace is how much longer than the agent the whole dial waits.
	agentGrace = 5 * time.Second
	// signingTimeout bounds one signature: a person may have to touch a key.
	signingTimeout = time.Minute
)

// fromAgent lists the agent's keys. A missing agent is an error only if an argument named it.
func (l *login) fromAgent() ([]candidate, error) {
	if l.plan.agent == "" {
		if l.plan.agentNamed {
			return nil, noAgent("SSH_AUTH_SOCK is not set")
		}
		l.skip("no agent, SSH_AUTH_SOCK is not set")
		return nil, nil
	}
	keys, err := l.listAgent()
	if err != nil {
		if l.patience.over() { // which closed the connection to the agent
			return nil, l.patience.failure(l.hop.label)
		}
		if l.plan.agentNamed {
			return nil, noAgent(err.Error())
		}
		l.skip("the agent does not answer")
		return nil, nil
	}
	if len(keys) == 0 {
		if l.plan.agentNamed && !l.plan.only {
			return nil, noAgent("it has no key")
		}
		l.skip("the agent has no key")
	}
	return keys, nil
}

func (l *login) listAgent() ([]candidate, error) {
	defer l.patience.aside(l.hop.timeout + agentGrace)()
	d := net.Dialer{Timeout: l.hop.timeout}
	conn, err := d.DialContext(l.patience.ctx, "unix", l.plan.agent)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.closers = append(l.closers, conn, closer(context.AfterFunc(l.patience.ctx, func() { _ = conn.Close() })))
	l.mu.Unlock()
	// An agent gets as long as a host to list its keys.
	defer time.AfterFunc(l.hop.timeout, l.done).Stop()
	// An agent's signers use this connection, so it stays open until the login is over.
	client := agent.NewClient(conn)
	signers, err := client.Signers()
	if err != nil {
		return nil, err
	}
	var out []candidate
	for _, s := range signers {
		signer, ok := s.(ssh.AlgorithmSigner)
		if !ok {
			continue
		}
		out = append(out, candidate{signer: signer, agent: true, source: "agent" + comment(s.PublicKey())})
	}
	return out, nil
}

func comment(key ssh.PublicKey) string {
	k, ok := key.(*agent.Key)
	if !ok || k.Comment == "" {
		return ""
	}
	return " (" + extensions.Clean(k.Comment, 60) + ")"
}

// closer runs as a context's hook.
type closer func() bool

func (c closer) Close() error { c(); return nil }

func noAgent(why string) error {
	return extensions.Errorf(extensions.KindUnauthorized, "the SSH agent cannot be used: %s", extensions.Clean(why, 200)).
		WithRemedy("start an agent (`eval $(ssh-agent)`), `ssh-add` the key, and run in the same environment")
}
