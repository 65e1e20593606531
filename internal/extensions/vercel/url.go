package vercel

import (
	"context"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// maxPorts is how many the vendor opens of one sandbox.
const maxPorts = 15

// URL implements extensions.URLGiver. A port is open to everybody from its first URL on, and no other is.
func (b *backend) URL(ctx context.Context, h extensions.Handle, port int) (u extensions.URL, err error) {
	defer named("url", h.ID, &err)
	done, err := b.alone(ctx, h.Ref)
	if err != nil {
		return u, err
	}
	defer done()
	w, err := b.runs(ctx, h)
	if err != nil {
		return u, err
	}
	if address := addressOf(w.Routes, port); address != "" {
		return extensions.URL{Address: address}, nil
	}
	open := []int{port}
	for _, r := range w.Routes {
		open = append(open, r.Port)
	}
	slices.Sort(open)
	if len(open) > maxPorts {
		return u, extensions.Errorf(extensions.KindExhausted, "%s opens %d ports of a sandbox, and they are all taken", vendor, maxPorts).
			WithRemedy("serve it on one of those ports")
	}
	if err := b.patch(ctx, h.Ref, map[string]any{"ports": open}); err != nil {
		return u, err
	}
	if w, err = b.runs(ctx, h); err != nil {
		return u, err
	}
	if u.Address = addressOf(w.Routes, port); u.Address == "" {
		return u, extensions.Errorf(extensions.KindInternal, "%s opened the port %d and gave no address for it", vendor, port)
	}
	return u, nil
}

// addressOf is where a port is reached; "" = nowhere, or at an address that is none.
func addressOf(all []route, port int) string {
	for _, r := range all {
		if u, err := webcall.Address(r.URL); err == nil && r.Port == port && u.User == nil {
			return strings.TrimSuffix(u.String(), "/")
		}
	}
	return ""
}
