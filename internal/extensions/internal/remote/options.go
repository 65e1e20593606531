package remote

import (
	"log/slog"
	"os"
	"time"
)

// What Options are where they are zero.
const (
	DefaultDialTimeout = 15 * time.Second
	DefaultKeepAlive   = 15 * time.Second
	// DefaultMaxSessions leaves room below the 10 of a stock sshd.
	DefaultMaxSessions = 8
)

// Options say how hosts are dialled. Clients that share connections use those
// of the one who opened first.
type Options struct {
	// DialTimeout bounds each step of getting a session: connecting to a host
	// or jump host, and its answer to a request. 0 = DefaultDialTimeout.
	DialTimeout time.Duration
	// KeepAlive is how often an idle host is asked for a sign of life; one that
	// gives none for twice as long is taken for dead. 0 = DefaultKeepAlive.
	KeepAlive time.Duration
	// MaxSessions bounds the sessions on one connection; a host that allows
	// fewer is believed. 0 = DefaultMaxSessions.
	MaxSessions int
	// ConfigFile is the ssh_config that aliases are looked up in; "" = ~/.ssh/config.
	ConfigFile string
	// Getenv reads the environment: SSH_AUTH_SOCK. nil = os.Getenv.
	Getenv func(string) string
	// Home is what ~ stands for; "" = the user's own.
	Home string
	// Log gets debug lines about connections; nil = none.
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
