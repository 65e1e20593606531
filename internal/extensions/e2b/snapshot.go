package e2b

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shelf"
)

var snapshotRef = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:-]{0,255}$`)

func (b *backend) take(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (shelf.Named, error) {
	d, err := b.source(ctx, h)
	if err != nil {
		return shelf.Named{}, err
	}
	name := spec.ID + "-" + string(h.ID)
	var made api.SnapshotInfo
	_, err = b.act(ctx, http.MethodPost, d.SandboxID, "snapshots", api.SandboxSnapshotRequest{Name: &name}, &made, nil)
	return shelf.Named{Name: name, Ref: made.SnapshotID}, err
}

// named shows the names of all snapshots, or those of one, which the list says not to be there.
func (b *backend) named(ctx context.Context, _, ref string, until func(shelf.Named) bool) error {
	query, there := url.Values{}, ref == ""
	if name, _, _ := strings.Cut(ref, ":"); name != "" {
		query.Set("name", name)
	}
	err := b.snapshots(ctx, query, func(i api.SnapshotInfo) (done bool) {
		there = there || i.SnapshotID == ref
		for _, name := range append([]string{i.SnapshotID}, i.Names...) {
			done = done || until(shelf.Named{Name: name, Ref: i.SnapshotID})
		}
		return done
	})
	if err == nil && !there {
		err = extensions.Errorf(extensions.KindNotFound, "%s has no such snapshot", vendor)
	}
	return err
}

// snapshots shows the team's snapshots to until, page by page, until it is true.
func (b *backend) snapshots(ctx context.Context, query url.Values, until func(api.SnapshotInfo) bool) error {
	query.Set("limit", "100")
	return rest.Pages(vendor, func(token string) (string, error) {
		if token != "" {
			query.Set("nextToken", token)
		}
		var page []api.SnapshotInfo
		a, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"snapshots"}, Query: query, Out: &page})
		if err != nil {
			return "", err
		}
		for _, i := range page {
			if until(i) {
				return "", nil
			}
		}
		return a.Header.Get("X-Next-Token"), nil
	})
}

// drop deletes a snapshot, which is a template of its own.
func (b *backend) drop(ctx context.Context, ref string) error {
	_, err := b.control.Do(ctx, rest.Call{Method: http.MethodDelete, Path: []string{"templates", ref}})
	return err
}

// dropped is drop where one that is gone is success.
func (b *backend) dropped(ctx context.Context, ref string) error {
	err := b.drop(ctx, ref)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return err
}
