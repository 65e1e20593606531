package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Warnings tells what is unwise about the configuration as a whole: catalog
// entries that replace others, a ledger that an ephemeral runner forgets.
func (e *Engine) Warnings() []Notice {
	var out []Notice
	if len(e.catalog.Notices) > 0 {
		out = append(out, Notice{Summary: "The catalog", Detail: strings.Join(e.catalog.Notices, "\n")})
	}
	if e.opts.Ledger == "" && e.getenv("CI") == "true" {
		out = append(out, Notice{Summary: "The ledger is on this machine only",
			Detail: "CI is set: an ephemeral runner forgets a local ledger, and with it what it made. Sandboxes still end by themselves; set the provider's ledger to a place that lasts."})
	}
	return out
}

// planNotices tells what a plan can know of the world beside its arguments. The
// error is why the ledger could not be read, which is told too.
func (e *Engine) planNotices(ctx context.Context, p *prepared, out *Planned) error {
	if c := p.decision.Chosen; c != nil && c.Place == extensions.PlaceMachine && p.resolved.Spec.Network.Default == "allow" {
		out.Notices = append(out.Notices, Notice{Summary: "This sandbox shares the machine's network",
			Detail: "network.default is allow, which at " + c.ID() + " means the network of this machine, its loopback services and cloud metadata included."})
	}
	l, err := e.reader(ctx)
	var row ledger.Sandbox
	if err == nil && p.req.Name != "" {
		row, err = l.ByName(ctx, e.account, p.req.Name)
		if absent(err) {
			err = nil
		}
	}
	if err != nil {
		out.Notices = append(out.Notices, ledgerUnread(err))
		return err
	}
	out.NameHolder = row.ID
	if row.ID == "" || !lifecycle.Usable(row.State) || lifecycle.Overdue(e.now(), row.ExpiresAt) || p.req.OnConflict == "adopt" {
		return nil // settled, waited for or taken over at apply
	}
	out.NameTaken = &Notice{Summary: "The name is taken now",
		Detail: fmt.Sprintf("%s of account %s is the name of sandbox %s (%s, ends %s). Unless that one is gone by then, the apply fails: choose another name, use name_prefix (with create_before_destroy a must), import it, or set on_conflict = \"adopt\".",
			p.req.Name, e.account, row.ID, lifecycle.Shown(row.State), row.ExpiresAt.UTC().Format(time.RFC3339))}
	return nil
}

// CheckLedger reports why what is planned now could not be recorded by the
// apply either: a ledger that is damaged, or not one. One on another machine may
// be reached, and with other rights, by then.
func (e *Engine) CheckLedger(ctx context.Context) error {
	_, err := e.reader(ctx)
	return e.unusable(err)
}

func (e *Engine) unusable(err error) error {
	damaged := extensions.IsKind(err, extensions.KindInternal)
	if err == nil || errors.Is(err, ledger.ErrOldSchema) || ledger.Shared(e.ledgerURL()) && !damaged {
		return nil
	}
	return failClosed(err, "nothing can be made")
}

func ledgerUnread(err error) Notice {
	if errors.Is(err, ledger.ErrOldSchema) {
		return Notice{Summary: "The ledger is brought forward by the apply", Detail: err.Error() + ". Until then plans know nothing of what it has."}
	}
	return Notice{Summary: "The ledger cannot be read", Detail: strings.TrimSpace(err.Error() + ". An apply would fail. " + extensions.RemedyOf(err))}
}

// full explains a place that has no room.
func full(err error, candidate string) error {
	var f *ledger.Full
	if !errors.As(err, &f) {
		return err
	}
	return extensions.Errorf(extensions.KindExhausted, "%s is full: %d of at most %d sandboxes are there", candidate, f.Live, f.Max).
		WithRemedy("destroy one, raise capacity.max_sandboxes, or add another host")
}
