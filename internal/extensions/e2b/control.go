package e2b

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// get reads one sandbox. KindNotFound is the vendor's own word.
func (b *backend) get(ctx context.Context, ref string) (*api.SandboxDetail, error) {
	var d api.SandboxDetail
	_, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"sandboxes", ref}, Out: &d,
		Is: func() bool { return d.SandboxID == ref }})
	if err != nil {
		return nil, err
	}
	return &d, nil
}

// owned reads the sandbox of a handle and refuses one that carries another id.
func (b *backend) owned(ctx context.Context, h extensions.Handle) (*api.SandboxDetail, error) {
	ref, err := b.ref(ctx, h)
	if err != nil {
		return nil, err
	}
	d, err := b.get(ctx, ref)
	if err != nil {
		return nil, err
	}
	if id, ok := b.ours(d.Metadata); !ok || id != h.ID {
		return nil, extensions.Errorf(extensions.KindConflict, "the sandbox %s at %s does not carry this sandbox's id", ref, vendor).
			WithRemedy("check it at %s; sandboxer does not own it", vendor)
	}
	return d, nil
}

// list reads the sandboxes with a label, running or paused, page by page. A listed sandbox lacks what only get
// tells.
func (b *backend) list(ctx context.Context, label, value string) (all []api.SandboxDetail, err error) {
	query := url.Values{"metadata": {label + "=" + labels.Value(value)}, "state": {"running,paused"}, "limit": {"100"}}
	err = rest.Pages(vendor, func(token string) (string, error) {
		if token != "" {
			query.Set("nextToken", token)
		}
		var page []api.SandboxDetail
		a, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"v2", "sandboxes"}, Query: query, Out: &page})
		for _, d := range page {
			if _, ok := b.ours(d.Metadata); ok && refName.MatchString(d.SandboxID) {
				all = append(all, d)
			}
		}
		if err != nil {
			return "", err
		}
		return a.Header.Get("X-Next-Token"), nil
	})
	return all, err
}

// act calls one verb on a sandbox. A nil in sends no body.
func (b *backend) act(ctx context.Context, method, ref, verb string, in, out any, is func() bool) (rest.Answer, error) {
	path := []string{"sandboxes", ref}
	if verb != "" {
		path = append(path, verb)
	}
	return b.control.Do(ctx, rest.Call{Method: method, Path: path, In: in, Out: out, Is: is})
}

// seconds is the time that is left until the deadline, rounded up: nothing ends before it.
func seconds(deadline time.Time) int32 {
	left := math.Ceil(time.Until(deadline).Seconds())
	return int32(min(max(left, 0), math.MaxInt32))
}
