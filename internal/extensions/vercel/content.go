package vercel

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"path"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// uploadTime bounds one call that brings files.
const uploadTime = 30 * time.Minute

// contentFile is written last.
const contentFile = home + "/.sandboxer/sandbox.json"

// content is what a filled sandbox keeps about itself. The variables lie here and not in the vendor's record of the
// sandbox: they may be secrets.
type content struct {
	ID  extensions.ID     `json:"id"`
	Env map[string]string `json:"env,omitempty"`
}

// content reads what the sandbox was filled with; none if it was not.
func (i *inside) content(ctx context.Context, id extensions.ID) (c content, err error) {
	if known, ok := i.b.filled.Load(i.w.Session.ID); ok {
		return known.(content), nil
	}
	var text bytes.Buffer
	err = i.get(ctx, contentFile, &text)
	switch {
	case extensions.IsKind(err, extensions.KindNotFound):
		return c, nil
	case err != nil:
		return c, err
	case json.Unmarshal(text.Bytes(), &c) != nil || c.ID != id:
		return content{}, nil
	}
	i.b.filled.Store(i.w.Session.ID, c)
	return c, nil
}

// fill gives a new sandbox its contents, unless it has them. What was cut short anywhere is done again, over what is there.
func (i *inside) fill(ctx context.Context, spec extensions.Spec) error {
	c, err := i.content(ctx, spec.ID)
	if err != nil || c.ID == spec.ID {
		return err
	}
	if dir := i.dir(); dir != "" {
		if err := i.fillWorkspace(ctx, dir, spec.Workspace.Source); err != nil {
			return err
		}
	}
	c = content{ID: spec.ID, Env: environment(spec)}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if spec.Instructions != "" {
		at := path.Join(home, extensions.InstructionsPath)
		if !i.bare {
			at = path.Join(workDir, extensions.InstructionsPath)
		}
		if err := i.put(ctx, execwire.File{Path: at, Content: strings.NewReader(spec.Instructions)}); err != nil {
			return err
		}
	}
	if err := i.put(ctx, execwire.File{Path: contentFile, Content: bytes.NewReader(text)}); err != nil {
		return err
	}
	i.b.filled.Store(i.w.Session.ID, c)
	return nil
}

func (i *inside) fillWorkspace(ctx context.Context, dir string, source extensions.WorkspaceSource) error {
	if source == nil {
		exit, _, err := i.run(ctx, "", "mkdir", "-p", dir)
		if err == nil && exit != 0 {
			err = extensions.Errorf(extensions.KindUnavailable, "mkdir -p %s ended with code %d", dir, exit).
				WithRemedy("use an image whose user may write below %s", home)
		}
		return err
	}
	r, err := source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return tarbox.Upload(ctx, r, tarbox.Whole(i.transport, dir, where))
}

func environment(spec extensions.Spec) map[string]string {
	env := map[string]string{}
	maps.Copy(env, spec.Toolchain.Env)
	maps.Copy(env, spec.Env)
	for name, s := range spec.Secrets {
		env[name] = s.Reveal()
	}
	return env
}
