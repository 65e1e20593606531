package remote

import (
	"log/slog"
	"os"
	"time"
)

// Defaults for zero Options.
const (
	DefaultDialTimeout = 15 * time.Second
	DefaultKeepAlive   = 15 * time.Second
	// DefaultMaxSessions leaves room below a stock sshd's 10.
	DefaultMaxSessions = 8
)

// Options say how to dial hosts. Clients that share connections use the options of the client that opened
// first.
type Options struct {
	// DialTimeout bounds each step of getting a session: connecting to a host or jump host, and its answer to
	// a request. 0 = DefaultDialTimeout.
	DialTimeout time.Duration
	// KeepAlive is how often an idle host is asked for a sign of life; a host that gives none for twice as
	// long counts as dead. 0 = DefaultKeepAlive.
	KeepAlive time.Duration
	// MaxSessions bounds the sessions on one connection; a host that allows fewer gets fewer. 0 =
	// DefaultMaxSessions.
	MaxSessions int
	// ConfigFile is the ssh_config for looking up aliases; "" = ~/.ssh/config.
	ConfigFile string
	// Getenv reads the environment: SSH_AUTH_SOCK. nil = os.Getenv.
	Getenv func(string) string
	// Home replaces ~; "" = the user's own.
	Home string
	// Log receives debug lines about connections; nil = none.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.DialTimeout <= 0 {
		o.DialTimeout = DefaultDialTimeout
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = DefaultKeepAlive
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = DefaultMaxSessions
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
