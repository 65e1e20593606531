package engine

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/life"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// HostView is a registered host with its probed facts.
type HostView = life.HostView

// CheckHost validates a host's arguments without dialling.
func (e *Engine) CheckHost(h Host) error {
	return e.life.CheckHost(h)
}

// RegisterHost validates, probes and records a host; see [life.Manager.RegisterHost].
func (e *Engine) RegisterHost(ctx context.Context, h Host, former string) (HostView, error) {
	return e.life.RegisterHost(ctx, h, former)
}

// GetHost probes a host again. It never needs the ledger and writes nothing.
func (e *Engine) GetHost(ctx context.Context, h Host) (HostView, error) {
	return e.life.GetHost(ctx, h)
}

// LookupHost finds a registered host by name. NotFound names the nearest ones.
func (e *Engine) LookupHost(ctx context.Context, name string) (Host, error) {
	return e.life.LookupHost(ctx, name)
}

// Hosts lists the account's registered hosts by name, with the facts of their last registration. It reads
// only the ledger.
func (e *Engine) Hosts(ctx context.Context) ([]HostView, error) { return e.life.Hosts(ctx) }

// ForgetHost removes a host from the ledger; see [life.Manager.ForgetHost].
func (e *Engine) ForgetHost(ctx context.Context, name, ref string, force bool) error {
	return e.life.ForgetHost(ctx, name, ref, force)
}

// HostTaken returns KindConflict if the name of h is registered with other arguments. It does not dial.
func (e *Engine) HostTaken(ctx context.Context, h Host) error {
	return e.life.HostTaken(ctx, h)
}

// HostShared returns KindConflict if h is already registered with the same arguments. It does not dial.
func (e *Engine) HostShared(ctx context.Context, h Host) error {
	return e.life.HostShared(ctx, h)
}

// HostsMoved reports whether the hosts of a request no longer include the sandbox's machine, so that it must be
// replaced.
func HostsMoved(rec Receipt, hosts []string) bool { return life.HostsMoved(rec, hosts) }

// Tunnel returns the catalog's jump host of that name, with its identity. An unknown name is KindInvalid, with
// the nearest names.
func (e *Engine) Tunnel(name string) (extensions.SSH, error) { return e.catalog.Tunnel(name) }

// Identity returns the catalog's SSH identity of that name. An unknown name is KindInvalid, with the nearest
// names.
func (e *Engine) Identity(name string) (extensions.SSHIdentity, error) {
	return e.catalog.Identity(name)
}

// Survey lists the places of every extension, and with ask what they offer now; see [life.Manager.Survey].
func (e *Engine) Survey(ctx context.Context, ask bool) ([]Pool, error) {
	return e.life.Survey(ctx, ask)
}
