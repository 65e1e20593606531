package saasstub

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Logs implements extensions.LogStreamer with what commands have printed.
func (b *backend) Logs(ctx context.Context, h extensions.Handle, req extensions.LogRequest) (io.ReadCloser, error) {
	if req.Service != "" {
		return nil, failed("logs", h.ID, extensions.Errorf(extensions.KindUnsupported,
			"this vendor has no services, so %q does not exist", req.Service))
	}
	if req.Tail < 0 {
		return nil, failed("logs", h.ID, extensions.Errorf(extensions.KindInvalid, "tail %d is negative", req.Tail))
	}
	ref, err := b.ref(ctx, h)
	if err != nil {
		return nil, failed("logs", h.ID, err)
	}
	r, err := b.client.Logs(ctx, ref, req.Tail, req.Follow)
	return r, failed("logs", h.ID, err)
}
