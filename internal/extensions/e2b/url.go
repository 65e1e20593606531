package e2b

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// trafficHeader lets a request pass to a port of a sandbox without public traffic. It ends with the sandbox.
const trafficHeader = "e2b-traffic-access-token"

// URL implements extensions.URLGiver.
func (b *backend) URL(ctx context.Context, h extensions.Handle, port int) (extensions.URL, error) {
	u, err := b.url(ctx, h, port)
	return u, failed("url", h.ID, err)
}

func (b *backend) url(ctx context.Context, h extensions.Handle, port int) (u extensions.URL, err error) {
	d, err := b.owned(ctx, h)
	if err != nil {
		return u, err
	}
	if d.State == api.Paused {
		return u, extensions.Paused(h.ID)
	}
	// Only a create and a connect tell the token. Of a running sandbox, a connect changes at most the deadline, and
	// only to a later one: so it is sent no later one. One that was paused meanwhile lives so long, which is enough to
	// pause it again.
	left := int32(max(1, (b.control.Until(d.EndAt) - time.Second).Seconds()))
	var out api.Sandbox
	a, err := b.act(ctx, http.MethodPost, d.SandboxID, "connect", api.ConnectSandbox{Timeout: left}, &out,
		func() bool { return out.SandboxID == d.SandboxID })
	if err != nil {
		return u, err
	}
	if a.Status == http.StatusCreated { // it was paused meanwhile, and so it shall be
		if _, err := b.Pause(ctx, h); err != nil {
			return u, err
		}
		return u, extensions.Paused(h.ID)
	}
	token := rest.Value(out.TrafficAccessToken)
	if token == "" {
		return u, extensions.Errorf(extensions.KindInternal, "%s gave no token for the ports of %s", vendor, d.SandboxID)
	}
	domain, err := b.domainOf(d.Domain)
	if err != nil {
		return u, err
	}
	scheme := "https"
	if strings.HasPrefix(b.sandboxURL, "http://") {
		scheme = "http"
	}
	return extensions.URL{Address: scheme + "://" + strconv.Itoa(port) + "-" + d.SandboxID + "." + domain,
		Header: extensions.Header{Name: trafficHeader, Value: extensions.NewSecret(token)}}, nil
}
