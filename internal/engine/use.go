package engine

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// enter opens the backend of a live sandbox for use and, at first use,
// records that it is active.
func (e *Engine) enter(ctx context.Context, rec Receipt) (*place.Backend, extensions.Handle, error) {
	b, row, err := e.enterRow(ctx, rec)
	return b, row.Handle, err
}

// enterRow tells the row too, with the handle in it.
func (e *Engine) enterRow(ctx context.Context, rec Receipt) (*place.Backend, ledger.Sandbox, error) {
	_, row, known := e.rowFor(ctx, rec)
	if row.State == lifecycle.Destroyed {
		_, err := e.getDestroyed(Sandbox{}, row)
		if err == nil {
			err = extensions.Errorf(extensions.KindNotFound, "sandbox %s expired at %s", row.ID, row.EndedAt.UTC().Format(time.RFC3339))
		}
		return nil, row, err
	}
	if known && rec.Generation > 0 && row.Generation > rec.Generation {
		return nil, row, e.fenced(row)
	}
	if !known && row.Extension == "" {
		if row, _ = e.whereabouts(ctx, row); row.Extension == "" {
			return nil, row, e.unknownHere(row.ID)
		}
	}
	if row.Extension == "" {
		return nil, row, extensions.Errorf(extensions.KindConflict, "sandbox %s is %s and has no place yet", row.ID, row.State).
			WithRemedy("wait until the run that makes it is done, or destroy it")
	}
	b, err := e.places.Open(ctx, placeOf(row))
	if err != nil {
		return nil, row, err
	}
	if row.Handle.IsZero() {
		if row.Handle, err = b.Find(ctx, row.ID); err != nil {
			return nil, row, err
		}
	}
	if known && row.State == lifecycle.Ready {
		e.markActive(ctx, row)
	}
	return b, row, nil
}

// markActiveTime is how long a use waits for a ledger that others have locked.
const markActiveTime = 2 * time.Second

// markActive is best effort: using a sandbox never fails for the ledger's
// sake, and any other change of the row matters more.
func (e *Engine) markActive(ctx context.Context, row ledger.Sandbox) {
	ctx, cancel := context.WithTimeout(ctx, markActiveTime)
	defer cancel()
	l, err := e.writer(ctx)
	if err != nil {
		return
	}
	now := e.now()
	_, _ = l.Apply(ctx, ledger.Change{ID: row.ID, Key: "active/" + string(row.ID) + "/" + now.UTC().Format(time.RFC3339Nano),
		Expect: ledger.Expect{States: []lifecycle.State{lifecycle.Ready}, Generation: row.Generation, NoIntent: true},
		To:     lifecycle.Active, Patch: ledger.Patch{SeenAliveAt: &now}})
}

// Exec runs a command inside, with the toolchain's variables.
func (e *Engine) Exec(ctx context.Context, rec Receipt, req ExecRequest) (ExecResult, error) {
	if err := req.Check(); err != nil {
		return ExecResult{}, err
	}
	b, row, err := e.enterRow(ctx, rec)
	if err != nil {
		return ExecResult{}, err
	}
	return b.Exec(ctx, row.Handle, place.Command{ExecRequest: insideFor(row, rec).wrap(req)})
}

// Logs streams what the sandbox's own processes print; the caller closes it.
func (e *Engine) Logs(ctx context.Context, rec Receipt, req extensions.LogRequest) (io.ReadCloser, error) {
	b, h, err := e.enter(ctx, rec)
	if err != nil {
		return nil, err
	}
	return b.Logs(ctx, h, req)
}

// Upload extracts a tar stream below dir inside.
func (e *Engine) Upload(ctx context.Context, rec Receipt, dir string, tar io.Reader) error {
	b, h, err := e.enter(ctx, rec)
	if err != nil {
		return err
	}
	return b.Upload(ctx, h, dir, tar)
}

// Download writes path inside as a tar stream.
func (e *Engine) Download(ctx context.Context, rec Receipt, path string, w io.Writer) error {
	b, h, err := e.enter(ctx, rec)
	if err != nil {
		return err
	}
	_, err = b.Download(ctx, h, path, w)
	return err
}
