package docker

import (
	"context"
	"encoding/json"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handleVersion = 1

// handleData tells the engine apart from others: where a socket leads to may change, and what is absent on
// another engine is not gone.
type handleData struct {
	Engine string `json:"engine"`
}

func (b *Backend) handle(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	info, err := b.engine.about(ctx)
	if err != nil {
		return extensions.Handle{}, err
	}
	data, _ := json.Marshal(handleData{Engine: info.ID}) // a string cannot fail
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: string(id), Data: data}, nil
}

// resolve checks that h is a handle of this extension and of this engine.
func (b *Backend) resolve(ctx context.Context, h extensions.Handle) error {
	if h.Extension != Handler || h.Version < 1 || h.Version > handleVersion || h.Ref != string(h.ID) {
		return extensions.Errorf(extensions.KindInvalid, "this version does not read this handle of %s", Handler)
	}
	if _, err := extensions.ParseID(string(h.ID)); err != nil {
		return err
	}
	var d handleData
	if err := json.Unmarshal(h.Data, &d); err != nil {
		return extensions.Errorf(extensions.KindInvalid, "the handle's data cannot be read: %w", err)
	}
	info, err := b.engine.about(ctx)
	if err != nil {
		return err
	}
	if info.ID != d.Engine {
		return extensions.Errorf(extensions.KindUnreachable, "%s is on another Docker engine than %s: %w", h.ID, b.engine.where,
			extensions.ErrElsewhere).
			WithRemedy("use the engine that created it (DOCKER_HOST, config.endpoint); it expires on its own")
	}
	return nil
}
