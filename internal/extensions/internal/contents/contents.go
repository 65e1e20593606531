// Package contents fills new sandboxes over any transport, and tells later what one was filled with. The last file that
// is written says that a sandbox is whole; what was cut short anywhere before is done again.
package contents

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// File is written last, relative to the home of the sandbox's user. What comes from a snapshot or a fork has that of its
// origin, whose id differs.
const File = ".sandboxer/sandbox.json"

// Contents is what a filled sandbox keeps about itself. The variables lie there and not in a vendor's record of the
// sandbox, which more people read and which may outlive it: they may be secrets.
type Contents struct {
	ID  extensions.ID     `json:"id"`
	Env map[string]string `json:"env,omitempty"`
}

// Of is what a new sandbox keeps: the variables of its toolchain, over them its own, over them its secrets.
func Of(spec extensions.Spec) Contents {
	env := map[string]string{}
	maps.Copy(env, spec.Toolchain.Env)
	maps.Copy(env, spec.Env)
	for name, s := range spec.Secrets {
		env[name] = s.Reveal()
	}
	return Contents{ID: spec.ID, Env: env}
}

// For returns a command's request with the sandbox's variables below its own.
func (c Contents) For(req extensions.ExecRequest) extensions.ExecRequest {
	env := maps.Clone(c.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, req.Env)
	req.Env = env
	return req
}

// Reader reads files of one sandbox. A path is absolute, or below the home of its user.
type Reader interface {
	// Get returns a file; nothing or KindNotFound = there is none.
	Get(ctx context.Context, at string) ([]byte, error)
}

// Inside fills one sandbox.
type Inside interface {
	Reader
	// Put writes a file with the folders above it, whole or not at all.
	Put(ctx context.Context, at string, b []byte) error
	// Workspace makes the workspace: empty and then from its source, or over what a snapshot or a fork has of it.
	Workspace(ctx context.Context, dir string, spec extensions.Spec) error
}

// Batch is an Inside that writes several files by one call.
type Batch interface {
	Inside
	// PutAll writes files in their order, each as Put does.
	PutAll(ctx context.Context, files []Written) error
}

// Written is one file of a Batch.
type Written struct {
	Path string
	Text []byte
}

// putAll writes files in their order.
func putAll(ctx context.Context, in Inside, files []Written) error {
	if all, ok := in.(Batch); ok {
		return all.PutAll(ctx, files)
	}
	for _, f := range files {
		if err := in.Put(ctx, f.Path, f.Text); err != nil {
			return err
		}
	}
	return nil
}

// Known remembers what the sandboxes of one backend were filled with. The zero value knows none.
type Known struct{ all sync.Map }

// Of reads what a sandbox, named ref at its place, was filled with; none if it was not, or is from another one.
func (k *Known) Of(ctx context.Context, ref string, id extensions.ID, from Reader) (Contents, error) {
	if c, ok := k.all.Load(ref); ok {
		return c.(Contents), nil
	}
	text, err := from.Get(ctx, File)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return Contents{}, nil
	}
	var c Contents
	if err != nil || json.Unmarshal(text, &c) != nil || c.ID != id { // its user may have changed it
		return Contents{}, err
	}
	k.all.Store(ref, c)
	return c, nil
}

// Fill gives a new sandbox its contents, unless it has them. dir is its workspace; "" = it has none.
func (k *Known) Fill(ctx context.Context, ref, dir string, spec extensions.Spec, in Inside) error {
	c, err := k.Of(ctx, ref, spec.ID, in)
	if err != nil || c.ID == spec.ID {
		return err
	}
	if dir != "" {
		if err := in.Workspace(ctx, dir, spec); err != nil {
			return err
		}
	}
	c = Of(spec)
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	files := []Written{{Path: File, Text: text}}
	if spec.Instructions != "" {
		files = slices.Insert(files, 0, Written{Path: path.Join(dir, extensions.InstructionsPath), Text: []byte(spec.Instructions)})
	}
	err = putAll(ctx, in, files)
	if err == nil {
		k.all.Store(ref, c)
	}
	return err
}

// Forget drops what is known of a sandbox that has ended.
func (k *Known) Forget(ref string) { k.all.Delete(ref) }
