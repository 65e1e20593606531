package openshell

import (
	"encoding/json"
	"regexp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	handleVersion = 1
	// longestName is the longest name of a sandbox in characters, so that a service's name, a sandbox's and a workspace's fit
	// one DNS label: the gateway's source, crates/openshell-server/src/grpc/mod.rs, read on 2026-11-24.
	longestName = 19
)

// refName is the gateway's id of a sandbox: CreateSshSessionResponse.sandbox_id.
var refName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// nameOf is a sandbox's name at the gateway: as much of our id as fits. The whole id is a label, and compared.
func nameOf(id extensions.ID) string { return string(id[:min(longestName, len(id))]) }

// where is the adapter's part of a handle.
type where struct {
	Workspace string `json:"workspace"`
	Name      string `json:"name"`
}

// handle points to a sandbox; ref, the gateway's id, is empty while only ours is known.
func handle(id extensions.ID, workspace, ref string) extensions.Handle {
	data, _ := json.Marshal(where{Workspace: workspace, Name: nameOf(id)}) // texts
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: ref, Data: data}
}

// workspaceOf is the workspace of a handle's sandbox.
func workspaceOf(h extensions.Handle) (string, error) {
	if err := h.CheckRef(Handler, handleVersion, refName); err != nil {
		return "", err
	}
	var w where
	if json.Unmarshal(h.Data, &w) != nil || !workspaceName.MatchString(w.Workspace) || w.Name != nameOf(h.ID) {
		return "", extensions.Errorf(extensions.KindInvalid, "the handle does not say which workspace of %s has its sandbox, or is another's",
			vendor)
	}
	return w.Workspace, nil
}
