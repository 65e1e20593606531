package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"

	"connectrpc.com/connect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/filesystem"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// contentFile is written last, relative to the home of the sandbox's user. What comes from a snapshot has that
// of its origin, whose id differs.
const contentFile = ".sandboxer/sandbox.json"

// content is what a filled sandbox keeps about itself. The variables lie here and not in the vendor's record of
// the sandbox: they may be secrets, and the vendor would hand them on to what is restored from a snapshot.
type content struct {
	ID  extensions.ID     `json:"id"`
	Env map[string]string `json:"env,omitempty"`
}

// contentOf reads what a sandbox was filled with; none if it was not, or is from another one.
func (b *backend) contentOf(ctx context.Context, e *envd, id extensions.ID) (c content, err error) {
	if known, ok := b.filled.Load(e.detail.SandboxID); ok {
		return known.(content), nil
	}
	_, err = e.files.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"files"}, Query: url.Values{"path": {contentFile}}, Out: &c})
	switch {
	case extensions.IsKind(err, extensions.KindNotFound):
		return content{}, nil
	case err != nil || c.ID != id:
		return content{}, err
	}
	b.filled.Store(e.detail.SandboxID, c)
	return c, nil
}

// fill gives a new sandbox its contents, unless it has them. What was cut short anywhere is done again.
func (b *backend) fill(ctx context.Context, spec extensions.Spec, e *envd) error {
	c, err := b.contentOf(ctx, e, spec.ID)
	if err != nil || c.ID == spec.ID {
		return err
	}
	dir := workDirOf(spec)
	if dir != "" {
		if err := e.fillWorkspace(ctx, dir, spec); err != nil {
			return err
		}
	}
	if spec.Instructions != "" {
		if err := e.put(ctx, path.Join(dir, extensions.InstructionsPath), []byte(spec.Instructions)); err != nil {
			return err
		}
	}
	c = content{ID: spec.ID, Env: environment(spec)}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := e.put(ctx, contentFile, text); err != nil {
		return err
	}
	b.filled.Store(e.detail.SandboxID, c)
	return nil
}

// fillWorkspace makes the workspace anew, or over what a snapshot or a fork has of it.
func (e *envd) fillWorkspace(ctx context.Context, dir string, spec extensions.Spec) error {
	if err := e.folder(ctx, dir, spec.FromSnapshot == nil && spec.FromSandbox == ""); err != nil || spec.Workspace.Source == nil {
		return err
	}
	r, err := spec.Workspace.Source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return e.unpack(ctx, dir, r)
}

// folder makes a folder of the sandbox's user, and those above it. empty removes what it has.
func (e *envd) folder(ctx context.Context, dir string, empty bool) error {
	var sent webcall.Sent
	ctx = sent.Watch(ctx)
	if empty {
		_, err := e.tree.Remove(ctx, connect.NewRequest(&filesystem.RemoveRequest{Path: dir}))
		if err != nil && connect.CodeOf(err) != connect.CodeNotFound {
			return refused(sent.Maybe(), "", err)
		}
	}
	_, err := e.tree.MakeDir(ctx, connect.NewRequest(&filesystem.MakeDirRequest{Path: dir}))
	if err != nil && connect.CodeOf(err) != connect.CodeAlreadyExists {
		return refused(sent.Maybe(), "", err)
	}
	return nil
}

// put writes one file, with the folders above it.
func (e *envd) put(ctx context.Context, at string, b []byte) error {
	_, err := e.files.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"files"}, Query: url.Values{"path": {at}},
		Body: bytes.NewReader(b), Type: "application/octet-stream"})
	return err
}

func environment(spec extensions.Spec) map[string]string {
	env := map[string]string{}
	for _, from := range []map[string]string{spec.Toolchain.Env, spec.Env} {
		for name, v := range from {
			env[name] = v
		}
	}
	for name, s := range spec.Secrets {
		env[name] = s.Reveal()
	}
	return env
}
