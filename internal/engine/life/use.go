package life

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// enter opens the backend of a running sandbox for use and records its first use as active. No use resumes a
// paused one: its mode is its owner's. Its place refuses that use, for the ledger may not know yet that it runs again.
func (m *Manager) enter(ctx context.Context, rec plan.Receipt) (*place.Backend, extensions.Handle, error) {
	b, row, err := m.enterRow(ctx, rec)
	return b, row.Handle, err
}

// enterRow is enter that also returns the row, which holds the handle.
func (m *Manager) enterRow(ctx context.Context, rec plan.Receipt) (*place.Backend, ledger.Sandbox, error) {
	l, row, known := m.rowFor(ctx, rec)
	if row.State == lifecycle.Destroyed {
		_, err := m.getDestroyed(Sandbox{}, row)
		if err == nil {
			err = extensions.Errorf(extensions.KindNotFound, "sandbox %s expired at %s", row.ID, row.EndedAt.UTC().Format(time.RFC3339))
		}
		return nil, row, err
	}
	if known {
		if err := m.notOurs(ctx, l, row, rec); err != nil {
			return nil, row, err
		}
	}
	if !known && row.Extension == "" {
		if row, _ = m.whereabouts(ctx, row); row.Extension == "" {
			return nil, row, m.unknownHere(row.ID)
		}
	}
	if row.Extension == "" {
		return nil, row, extensions.Errorf(extensions.KindConflict, "sandbox %s is %s and has no place yet", row.ID, row.State).
			WithRemedy("wait for the run that creates it, or destroy it")
	}
	b, err := m.places.Open(ctx, placeOf(row))
	if err != nil {
		return nil, row, err
	}
	if row.Handle.IsZero() {
		if row.Handle, err = b.Find(ctx, row.ID); err != nil {
			return nil, row, err
		}
	}
	if known && row.State == lifecycle.Ready && row.Mode != ledger.Paused {
		m.markActive(ctx, row)
	}
	return b, row, nil
}

// markActiveTime is how long a use waits for a locked ledger.
const markActiveTime = 2 * time.Second

// markActive is best effort: using a sandbox never fails because of the ledger, and any other change of
// the row takes precedence.
func (m *Manager) markActive(ctx context.Context, row ledger.Sandbox) {
	ctx, cancel := context.WithTimeout(ctx, markActiveTime)
	defer cancel()
	l, err := m.book.Writer(ctx)
	if err != nil {
		return
	}
	now := m.book.Now()
	_, _ = l.Apply(ctx, ledger.Change{ID: row.ID, Key: "active/" + string(row.ID) + "/" + now.UTC().Format(time.RFC3339Nano),
		Expect: ledger.Expect{States: []lifecycle.State{lifecycle.Ready}, Generation: row.Generation, NoIntent: true},
		To:     lifecycle.Active, Patch: ledger.Patch{SeenAliveAt: &now}})
}

// Exec runs a command inside, with the toolchain's variables.
func (m *Manager) Exec(ctx context.Context, rec plan.Receipt, req extensions.ExecRequest) (extensions.ExecResult, error) {
	if err := req.Check(); err != nil {
		return extensions.ExecResult{}, err
	}
	b, row, err := m.enterRow(ctx, rec)
	if err != nil {
		return extensions.ExecResult{}, err
	}
	return b.Exec(ctx, row.Handle, place.Command{ExecRequest: insideFor(row, rec).wrap(req)})
}

// Logs streams the output of the sandbox's own processes; the caller closes it.
func (m *Manager) Logs(ctx context.Context, rec plan.Receipt, req extensions.LogRequest) (io.ReadCloser, error) {
	b, row, err := m.enterRow(ctx, rec)
	if err != nil {
		return nil, err
	}
	return b.Logs(ctx, row.Handle, req)
}

// Upload extracts a tar stream below dir inside.
func (m *Manager) Upload(ctx context.Context, rec plan.Receipt, dir string, tar io.Reader) error {
	b, h, err := m.enter(ctx, rec)
	if err != nil {
		return err
	}
	return b.Upload(ctx, h, dir, tar)
}

// Download writes path inside as a tar stream.
func (m *Manager) Download(ctx context.Context, rec plan.Receipt, path string, w io.Writer) error {
	b, h, err := m.enter(ctx, rec)
	if err != nil {
		return err
	}
	_, err = b.Download(ctx, h, path, w)
	return err
}

// URL returns the address at which the place itself answers for a port inside. A port outside 1-65535 is
// KindInvalid; a place without such addresses is KindUnsupported.
func (m *Manager) URL(ctx context.Context, rec plan.Receipt, port int) (extensions.URL, error) {
	if err := checkPort(port); err != nil {
		return extensions.URL{}, err
	}
	b, h, err := m.enter(ctx, rec)
	if err != nil {
		return extensions.URL{}, err
	}
	return b.URL(ctx, h, port)
}

func checkPort(port int) error {
	if port < 1 || port > 65535 {
		return extensions.Invalid("port %d is not between 1 and 65535", "use the port that the service listens on inside", port)
	}
	return nil
}

// Dialer connects to one port inside a sandbox and may be called repeatedly. A connection lives until it
// is closed or the sandbox ends; some have CloseWrite, which ends one direction.
type Dialer func(ctx context.Context) (io.ReadWriteCloser, error)

// Forward prepares connections to port of service inside ("" = the service that the profile names). A port
// outside 1-65535 is KindInvalid; a place that cannot connect is KindUnsupported. Each connection finds
// out by itself whether anything listens.
func (m *Manager) Forward(ctx context.Context, rec plan.Receipt, service string, port int) (Dialer, error) {
	if err := checkPort(port); err != nil {
		return nil, err
	}
	b, h, err := m.enter(ctx, rec)
	if err != nil {
		return nil, err
	}
	if err := b.Can(extensions.PowerPorts); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (io.ReadWriteCloser, error) { return b.Dial(ctx, h, service, port) }, nil
}
