package modal

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/held"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// URL implements extensions.URLGiver: by a tunnel where the binding had the port opened to everybody at the create, else by a
// connect token, which reaches any port and lets nobody else in.
func (b *backend) URL(ctx context.Context, h extensions.Handle, port int) (u extensions.URL, err error) {
	defer named("url", h.ID, &err)
	s, _, err := b.Owned(ctx, h)
	if err != nil {
		return u, err
	}
	if slices.Contains(b.public, port) {
		out, err := b.control.SandboxGetTunnelsV2(ctx, pb.SandboxGetTunnelsRequest_builder{SandboxId: s.ref, Timeout: 20}.Build()) // seconds
		for _, t := range out.GetTunnels() {
			at, bad := webcall.Address("https://" + net.JoinHostPort(t.GetHost(), fmt.Sprint(t.GetPort())))
			if bad == nil && int(t.GetContainerPort()) == port {
				return extensions.URL{Address: strings.TrimSuffix(at.String(), ":443")}, nil
			}
		}
		if err != nil {
			return u, err
		}
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
	if at := held.Expiry(out.GetToken()); !at.IsZero() && (s.ends.IsZero() || at.Before(s.ends)) {
		u.ExpiresAt = at.Truncate(time.Second)
	}
	return u, nil
}
