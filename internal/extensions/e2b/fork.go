package e2b

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
)

// labelFork names the snapshot that a fork comes from.
const labelFork = "sandboxer.fork"

// CanFork implements extensions.Forker.
func (b *backend) CanFork(ctx context.Context, h extensions.Handle) error {
	_, err := b.source(ctx, h)
	return failed("fork", h.ID, err)
}

func (b *backend) source(ctx context.Context, h extensions.Handle) (*api.SandboxDetail, error) {
	d, err := b.owned(ctx, h)
	if err == nil && d.State == api.Paused {
		err = extensions.Paused(h.ID)
	}
	return d, err
}

// keepFork keeps the state of a fork's source in a snapshot, whose name says the fork's id. The vendor's own fork would
// give it the source's metadata. It deletes no snapshot that a sandbox comes from, so this one goes with the fork.
func (b *backend) keepFork(ctx context.Context, spec extensions.Spec) (template string, err error) {
	d, err := b.source(ctx, spec.Source)
	if err != nil {
		return "", err
	}
	select { // one at a time, as the vendor pauses the source for each
	case b.forking <- struct{}{}:
		defer func() { <-b.forking }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if err := spec.InTime(time.Now()); err != nil {
		return "", err
	}
	name := forkName(spec.ID)
	var made api.SnapshotInfo
	_, err = b.act(ctx, http.MethodPost, d.SandboxID, "snapshots", api.SandboxSnapshotRequest{Name: &name}, &made,
		func() bool { return isFork(made.SnapshotID, spec.ID) })
	return made.SnapshotID, err
}

func forkName(id extensions.ID) string { return "fork-" + string(id) }

// isFork reports whether a snapshot is that of a fork. Its reference is its name.
func isFork(ref string, id extensions.ID) bool {
	name, _, _ := strings.Cut(ref[strings.LastIndexByte(ref, '/')+1:], ":")
	return snapshotRef.MatchString(ref) && name == forkName(id)
}

// keptFork returns the snapshot that a fork comes from; "" if none is listed.
func (b *backend) keptFork(ctx context.Context, id extensions.ID) (ref string, err error) {
	err = b.snapshots(ctx, url.Values{"name": {forkName(id)}}, func(i api.SnapshotInfo) bool {
		if isFork(i.SnapshotID, id) {
			ref = i.SnapshotID
		}
		return ref != ""
	})
	return ref, err
}

// dropFork removes the snapshot that a fork came from; d is the fork, nil if it is gone or not listed.
func (b *backend) dropFork(ctx context.Context, id extensions.ID, d *api.SandboxDetail) (err error) {
	ref := ""
	if d == nil {
		ref, err = b.keptFork(ctx, id)
	} else if d.Metadata != nil && isFork((*d.Metadata)[labelFork], id) {
		ref = (*d.Metadata)[labelFork]
	}
	if ref == "" || err != nil {
		return err
	}
	return b.dropped(ctx, ref)
}
