// Package vercel runs sandboxes at Vercel (vercel.com): microVMs in one project of a team, rented by the CPU that they use. What
// its users need to know is in doc.
//
// A sandbox has the name of our id, and one session: the microVM. Nothing here makes a second session, so neither a read nor a
// command wakes a sandbox that has ended, and a snapshot, which stops the session, ends its sandbox.
package vercel

import (
	"cmp"
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/contents"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// Handler is the name that bindings of this extension use.
const Handler = "vercel"

type extension struct{}

// New returns the extension.
func New() extensions.Extension { return extension{} }

// bound is a backend without an identity.
func bound(x extension, cfg extensions.Config) (*backend, error) {
	s, err := parseConfig(cfg)
	if err != nil {
		return nil, err
	}
	d, err := extensions.Declared(x, cfg.Values)
	return &backend{settings: s, desc: d}, err
}

// Open implements extensions.Extension. It contacts nobody.
func (x extension) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	b, err := bound(x, cfg)
	if err = cmp.Or(ctx.Err(), err); err == nil {
		b.identity, err = identify(cfg.Credentials)
	}
	if err == nil {
		b.api, err = rest.Open(rest.Options{Vendor: vendor, Base: b.apiURL, Bearer: b.token, Judge: judge})
	}
	if err != nil {
		return nil, failed("open", "", err)
	}
	b.creates = rate.NewLimiter(b.plan.rate, b.plan.burst)
	return b, nil
}

// Identity implements extensions.Identifier: an OIDC token lasts for hours, and its project stays.
func (extension) Identity(cfg extensions.Config) string {
	i, err := identify(cfg.Credentials)
	if err != nil {
		return ""
	}
	return i.team + "/" + i.project
}

// backend is one account, a part of a project at the vendor.
type backend struct {
	settings
	identity
	desc    extensions.Descriptor
	api     *rest.Client
	creates *rate.Limiter // the plan's new vCPUs, kept by waiting
	// changing is held while one sandbox's deadline or ports are read and added to: two that add at once would add twice.
	changing sync.Map       // name -> *semaphore.Weighted
	filled   contents.Known // by session
}

// Close implements extensions.Backend.
func (b *backend) Close() error {
	b.api.Close()
	return nil
}

// alone waits until nobody else of this process changes what is read of a sandbox first.
func (b *backend) alone(ctx context.Context, name string) (done func(), err error) {
	turn, _ := b.changing.LoadOrStore(name, semaphore.NewWeighted(1))
	return func() { turn.(*semaphore.Weighted).Release(1) }, turn.(*semaphore.Weighted).Acquire(ctx, 1)
}
