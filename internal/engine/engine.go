// Package engine holds the use cases: it resolves profiles, chooses places,
// writes the ledger before anything can cost money, calls extensions, settles
// what is uncertain and cleans up. It is the only caller of extensions and the
// only writer of the ledger; the Terraform provider and the command line are
// thin over it.
package engine

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Aliases of what the layers above need of the contract, so that they import
// the engine and nothing below it.
type (
	// ID names a sandbox for its whole life.
	ID = extensions.ID
	// Kind is the class of a failure.
	Kind = extensions.Kind
	// Error is a classified failure with a remedy.
	Error = extensions.Error
	// Secret is a value that never prints.
	Secret = extensions.Secret
	// Host is a machine the user owns.
	Host = extensions.Host
	// Reachability tells how to get into a sandbox.
	Reachability = extensions.Reachability
	// ExecRequest is one command to run inside.
	ExecRequest = extensions.ExecRequest
	// ExecResult is a finished command.
	ExecResult = extensions.ExecResult
)

// DefaultAccount is billed and listed when none is configured.
const DefaultAccount = "default/default"

// Options configure an Engine. The zero value of every field but Extensions
// has a sensible meaning.
type Options struct {
	// Extensions is every adapter there is; see package all.
	Extensions []extensions.Extension
	// Catalog lists folders; later ones win. The built-in catalog is always first.
	Catalog []string
	// Ledger is a URL: sqlite:///path. "" = ledger.db in StateDir.
	Ledger string
	// StateDir holds the default ledger and what extensions keep on this
	// machine. "" = DefaultStateDir().
	StateDir string
	// Account is "org/workspace". "" = DefaultAccount.
	Account string
	// Credentials are per binding and declared field.
	Credentials map[string]map[string]Secret
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Rand is the source of ids; nil = crypto/rand.
	Rand io.Reader
	// Log receives structured progress and retries; nil discards it.
	Log *slog.Logger
}

// Notice is something worth telling that does not stop the work.
type Notice struct {
	Summary string
	Detail  string
}

// Notify receives notices while an operation runs; nil ignores them.
type Notify func(Notice)

// Context helpers live with the operations; see invoke.go.
var _ context.Context = context.Background()
