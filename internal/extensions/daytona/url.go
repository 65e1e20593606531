package daytona

import (
	"context"
	"net/http"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// previewHeader lets a request pass to a port of a private sandbox. It ends with the sandbox's next start at the latest.
const previewHeader = "x-daytona-preview-token"

// URL implements extensions.URLGiver.
func (b *backend) URL(ctx context.Context, h extensions.Handle, port int) (u extensions.URL, err error) {
	defer tell("url", h.ID, &err)
	s, told, err := b.Owned(ctx, h)
	if err != nil {
		return u, err
	}
	if told.Phase == extensions.PhasePaused {
		return u, extensions.Paused(h.ID)
	}
	if s.Public {
		return u, extensions.Errorf(extensions.KindConflict, "somebody made the ports of %s public at %s", s.Id, vendor).
			WithRemedy("make it private there")
	}
	out, _, err := rest.Ask(ctx, b.control,
		rest.Call{Method: http.MethodGet, Path: []string{"sandbox", s.Id, "ports", strconv.Itoa(port), "preview-url"}},
		func(out *api.PortPreviewUrl) bool { return out.SandboxId == s.Id })
	if err != nil {
		return u, err
	}
	if _, err := webcall.Address(out.Url); err != nil || out.Token == "" {
		return u, extensions.Errorf(extensions.KindInternal, "%s gave no safe address and token for the port %d of %s", vendor, port, s.Id)
	}
	return extensions.URL{Address: out.Url, Header: extensions.Header{Name: previewHeader, Value: extensions.NewSecret(out.Token)}}, nil
}
