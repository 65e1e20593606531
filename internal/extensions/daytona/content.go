package daytona

import (
	"bytes"
	"context"
	"net/http"
	"path"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/contents"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// Get implements contents.Reader.
func (t *toolbox) Get(ctx context.Context, at string) ([]byte, error) {
	if !path.IsAbs(at) {
		at = path.Join(t.home, at)
	}
	var raw bytes.Buffer
	err := t.get(ctx, at, &raw)
	return raw.Bytes(), err
}

// inside fills the sandbox.
func (t *toolbox) inside() contents.Shell {
	return contents.Shell{Run: t.calls(0).Transport, Where: where, Read: t.Get, Unpack: t.unpack}
}

// desktop starts the desktop of a sandbox that requires one, unless it runs.
func (t *toolbox) desktop(ctx context.Context) error {
	if t.sandbox.Labels[labelDesktop] == "" {
		return nil
	}
	var out struct {
		Status map[string]struct {
			Running bool `json:"running"`
		} `json:"status"`
	}
	a, err := t.client.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"computeruse", "start"}, Out: &out,
		Is: func() bool { return len(out.Status) > 0 }})
	lacks := err != nil && a.Own && a.Status != http.StatusTooManyRequests
	for _, process := range out.Status {
		lacks = lacks || !process.Running
	}
	if lacks {
		return extensions.Errorf(extensions.KindUnsupported, "the desktop does not run in this image").At("requires.capabilities").
			WithRemedy("use a snapshot with Xvfb, xfce4, x11vnc and novnc, such as the vendor's own, or do not require a desktop")
	}
	return err
}
