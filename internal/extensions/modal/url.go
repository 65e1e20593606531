package modal

import (
	"context"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// URL implements extensions.URLGiver by a connect token: it reaches any port, and nobody without it does. The vendor's
// tunnels would have to be opened at the create, to everybody.
func (b *backend) URL(ctx context.Context, h extensions.Handle, port int) (u extensions.URL, err error) {
	defer named("url", h.ID, &err)
	s, _, err := b.Owned(ctx, h)
	if err != nil {
		return u, err
	}
	p := uint32(port)
	out, err := b.control.SandboxCreateConnectTokenV2(ctx,
		pb.SandboxCreateConnectTokenRequest_builder{SandboxId: s.ref, Port: &p}.Build())
	if err != nil {
		return u, err
	}
	if _, err := webcall.Address(out.GetUrl()); err != nil || out.GetToken() == "" {
		return u, extensions.Errorf(extensions.KindInternal, "%s gave no safe address or no token for the ports of %s", vendor, s.ref)
	}
	bearer := extensions.NewSecret("Bearer " + out.GetToken())
	u = extensions.URL{Address: out.GetUrl(), Header: extensions.Header{Name: "Authorization", Value: bearer}}
	if at := expiry(out.GetToken()); !at.IsZero() && (s.ends.IsZero() || at.Before(s.ends)) {
		u.ExpiresAt = at.Truncate(time.Second)
	}
	return u, nil
}
