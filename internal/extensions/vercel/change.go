package vercel

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// Extend implements extensions.Extender. The vendor adds to what is left, so the difference is sent, once: whoever comes
// again after a lost answer reads first, and finds nothing to add.
func (b *backend) Extend(ctx context.Context, h extensions.Handle, to time.Time) error {
	return failed("extend", h.ID, b.extend(ctx, h, to))
}

func (b *backend) extend(ctx context.Context, h extensions.Handle, to time.Time) error {
	done, err := b.alone(ctx, h.Ref)
	if err != nil {
		return err
	}
	defer done()
	w, err := b.runs(ctx, h)
	if extensions.IsKind(err, extensions.KindUnavailable) { // it has not begun, so its deadline is not known
		err = b.until(ctx, stopWithin, h.Ref, "has not begun it", func(ctx context.Context) (bool, error) {
			w, err = b.runs(ctx, h)
			if extensions.IsKind(err, extensions.KindUnavailable) {
				return false, nil
			}
			return err == nil, err
		})
	}
	if err != nil {
		return err
	}
	now := b.observe(h.ID, w)
	if now.Deadline.Sub(to) > time.Second {
		return extensions.Errorf(extensions.KindUnsupported, "%s can move a deadline later only; it is %s", vendor,
			now.Deadline.Format(time.RFC3339)).At("ttl").WithRemedy("destroy it at the earlier time")
	}
	if to.Sub(now.StartedAt) > b.plan.longest {
		return b.tooLong()
	}
	more := deadline.Left(now.Deadline, to, time.Millisecond)
	if more == 0 {
		return nil
	}
	var out struct {
		Session session `json:"session"`
	}
	if err := b.act(ctx, w.Session.ID, "extend-timeout", map[string]int64{"duration": more}, &out,
		func() bool { return out.Session.ID == w.Session.ID }); err != nil {
		return err
	}
	if w, err = b.runs(ctx, h); err != nil {
		return err
	}
	if short := to.Sub(b.observe(h.ID, w).Deadline); short > time.Second {
		return extensions.Errorf(extensions.KindUnsupported, "%s ends it %s before the deadline", vendor, short.Round(time.Second)).
			WithRemedy("shorten ttl: the plan limits how long a sandbox runs")
	}
	return nil
}

// URL implements extensions.URLGiver. A port is open to everybody from its first URL on, and no other is.
func (b *backend) URL(ctx context.Context, h extensions.Handle, port int) (extensions.URL, error) {
	u, err := b.url(ctx, h, port)
	return u, failed("url", h.ID, err)
}

// maxPorts is how many the vendor opens of one sandbox.
const maxPorts = 15

func (b *backend) url(ctx context.Context, h extensions.Handle, port int) (u extensions.URL, err error) {
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
			WithRemedy("serve what you need by one of them")
	}
	var out struct {
		Sandbox sandbox `json:"sandbox"`
	}
	if _, err := b.api.Do(ctx, rest.Call{Method: http.MethodPatch, Path: []string{"v2", "sandboxes", h.Ref}, Query: b.of(),
		In: map[string][]int{"ports": open}, Out: &out, Is: func() bool { return out.Sandbox.Name == h.Ref }}); err != nil {
		return u, err
	}
	if w, err = b.runs(ctx, h); err != nil {
		return u, err
	}
	if u.Address = addressOf(w.Routes, port); u.Address == "" {
		return u, extensions.Errorf(extensions.KindInternal, "%s opened the port %d and tells no address of it", vendor, port)
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
