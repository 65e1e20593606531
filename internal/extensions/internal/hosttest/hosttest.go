// Package hosttest is internal/extensions/hosttest, by the name that the
// packages beside it know.
package hosttest

import (
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

type (
	// Server is hosttest.Server.
	Server = hosttest.Server
	// Option is hosttest.Option.
	Option = hosttest.Option
	// Inventory is hosttest.Inventory.
	Inventory = hosttest.Inventory
	// Process is hosttest.Process.
	Process = hosttest.Process
	// Key is hosttest.Key.
	Key = hosttest.Key
)

var (
	WithConfig       = hosttest.WithConfig
	WithHostKeyTypes = hosttest.WithHostKeyTypes
	WithHostKey      = hosttest.WithHostKey
	WithListen       = hosttest.WithListen
	WithPort         = hosttest.WithPort
	WithShell        = hosttest.WithShell
	WithUser         = hosttest.WithUser
	WithDisk         = hosttest.WithDisk
	Image            = hosttest.Image
	Docker           = hosttest.Docker
	Main             = hosttest.Main
	NewKey           = hosttest.NewKey
)

// SSHD is hosttest.SSHD.
func SSHD(t testing.TB, opts ...Option) *Server { t.Helper(); return hosttest.SSHD(t, opts...) }

// DelayProxy is hosttest.DelayProxy.
func DelayProxy(t testing.TB, addr string, rtt time.Duration) (string, func() int) {
	t.Helper()
	return hosttest.DelayProxy(t, addr, rtt)
}

// Snapshot is hosttest.Snapshot.
func Snapshot(t testing.TB, within ...string) Inventory {
	t.Helper()
	return hosttest.Snapshot(t, within...)
}
