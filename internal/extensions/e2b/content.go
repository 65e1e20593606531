package e2b

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"connectrpc.com/connect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/filesystem"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/indoors"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// Get implements contents.Reader.
func (e *envd) Get(ctx context.Context, at string) (text []byte, err error) {
	_, err = e.files.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"files"}, Query: url.Values{"path": {at}}, Out: &text})
	return text, err
}

// Put implements contents.Inside.
func (e *envd) Put(ctx context.Context, at string, b []byte) error {
	_, err := e.files.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"files"}, Query: url.Values{"path": {at}},
		Body: bytes.NewReader(b), Type: "application/octet-stream"})
	return err
}

// Workspace implements contents.Inside.
func (e *envd) Workspace(ctx context.Context, dir string, spec extensions.Spec) error {
	if err := e.folder(ctx, dir, spec.FromSnapshot == nil && spec.FromSandbox == ""); err != nil || spec.Workspace.Source == nil {
		return err
	}
	r, err := spec.Workspace.Source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return tarbox.Upload(ctx, r, tarbox.Inside(e.run, dir, indoors.Where))
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
