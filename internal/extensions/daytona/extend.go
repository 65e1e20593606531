package daytona

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Extend implements extensions.Extender. The cloud counts a ttl from now and may cut what the organization does not allow, so the
// deadline is read back, and compared by the vendor's clock. An own installation has none: what moves is when it ends an unused
// sandbox.
func (b *backend) Extend(ctx context.Context, h extensions.Handle, deadline time.Time) (err error) {
	defer tell("extend", h.ID, &err)
	s, _, err := b.Owned(ctx, h)
	if err != nil {
		return err
	}
	return b.until(ctx, s.Id, deadline)
}

func (b *backend) until(ctx context.Context, ref string, deadline time.Time) error {
	verb := "autostop"
	if b.cloud {
		verb = "ttl"
	}
	s, err := b.act(ctx, http.MethodPost, ref, nil, verb, strconv.Itoa(minutes(deadline)))
	if err != nil {
		return err
	}
	return b.ends(ctx, s, deadline)
}

// ends refuses a sandbox that the cloud does not end at its deadline.
func (b *backend) ends(ctx context.Context, s *sandbox, deadline time.Time) (err error) {
	if b.cloud && s.AutoDestroyAt == "" { // it tells with the sandbox alone
		s, err = b.get(ctx, s.Id)
	}
	if err != nil || !b.cloud {
		return err
	}
	if early := deadline.Sub(time.Now().Add(b.control.Until(stamp(s.AutoDestroyAt)))); early > time.Second {
		return extensions.Errorf(extensions.KindUnsupported, "%s ends it %s before the deadline", vendor, early.Round(time.Second)).At("ttl").
			WithRemedy("shorten ttl: the organization limits how long a sandbox lives; `max_ttl` in the binding's capabilities tells plans")
	}
	return nil
}
