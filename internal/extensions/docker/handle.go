package docker

import (
	"context"
	"encoding/json"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handleVersion = 1

// handleData tells the engine apart from others: where a socket leads to may change, and what is absent on
// another engine is not gone. Engines of one machine may share the file with their id, and each has a folder of its own.
type handleData struct {
	Engine string `json:"engine"`
	Root   string `json:"root"`
}

// mark is the data of handles of what this engine has.
func (e *engine) mark(ctx context.Context) (json.RawMessage, error) {
	info, err := e.about(ctx)
	data, _ := json.Marshal(handleData{info.ID, info.DockerRootDir}) // strings cannot fail
	return data, err
}

// check refuses a handle of another engine, by its data.
func (e *engine) check(ctx context.Context, data json.RawMessage, what, remedy string) error {
	var d handleData
	if err := json.Unmarshal(data, &d); err != nil {
		return extensions.Errorf(extensions.KindInvalid, "the handle's data cannot be read: %w", err)
	}
	info, err := e.about(ctx)
	if err != nil || d == (handleData{info.ID, info.DockerRootDir}) {
		return err
	}
	return extensions.Errorf(extensions.KindUnreachable, "%s is on another Docker engine than %s: %w", what, e.where,
		extensions.ErrElsewhere).WithRemedy("%s", remedy)
}

func (b *Backend) handle(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	data, err := b.engine.mark(ctx)
	if err != nil {
		return extensions.Handle{}, err
	}
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
	return b.engine.check(ctx, h.Data, string(h.ID), "use the engine that created it (DOCKER_HOST, config.endpoint); it expires on its own")
}
