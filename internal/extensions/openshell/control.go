package openshell

import (
	"context"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// Annotations of this adapter.
const (
	noteWorkDir = "sandboxer.workdir" // the workspace inside; absent where there is none
	noteHome    = "sandboxer.home"
)

// pageSize is how many sandboxes one call lists at most.
const pageSize = 100

// labelsOf is what the gateway can be asked for; notesOf is read with the object.
func labelsOf(spec extensions.Spec) map[string]string {
	return map[string]string{extensions.LabelID: labels.Value(string(spec.ID)), extensions.LabelAccount: labels.Value(spec.Account)}
}

func notesOf(spec extensions.Spec) map[string]string {
	notes := labels.Of(spec)
	delete(notes, extensions.LabelID)
	delete(notes, extensions.LabelAccount)
	l := layoutOf(spec)
	notes[noteHome] = l.home
	if l.workDir != "" {
		notes[noteWorkDir] = l.workDir
	}
	return notes
}

// read returns the id that a sandbox carries, "" if it is none of this account, and its generation, 0 if it is not told.
func (b *backend) read(m *gateway.ObjectMeta) (extensions.ID, int64) {
	id, err := extensions.ParseID(m.GetLabels()[extensions.LabelID]) // an id is its own label
	if err != nil || m.GetLabels()[extensions.LabelAccount] != labels.Value(b.account) {
		return "", 0
	}
	return id, labels.Generation(m.GetAnnotations())
}

// look reads the sandbox that has the name of a handle's. A name is given again once its sandbox is gone, so the gateway's own
// id decides whether it is the same object: KindNotFound if it is not.
func (b *backend) look(ctx context.Context, h extensions.Handle) (*gateway.Sandbox, error) {
	workspace, err := workspaceOf(h)
	if err != nil {
		return nil, err
	}
	out, err := b.gateway.GetSandbox(ctx, &gateway.GetSandboxRequest{Name: nameOf(h.ID), Workspace: workspace})
	if err != nil {
		return nil, err
	}
	if err := about(out.GetSandbox(), h.ID, workspace); err != nil {
		return nil, err
	}
	if ref := out.GetSandbox().GetMetadata().GetId(); h.Ref != "" && h.Ref != ref {
		return nil, extensions.Errorf(extensions.KindNotFound, "%s is gone, and %s has its name", h.Ref, ref)
	}
	return out.GetSandbox(), nil
}

// about refuses an answer about something else.
func about(s *gateway.Sandbox, id extensions.ID, workspace string) error {
	m := s.GetMetadata()
	if m.GetName() != nameOf(id) || m.GetWorkspace() != workspace || !refName.MatchString(m.GetId()) {
		return extensions.Errorf(extensions.KindUnavailable, "%s answers about %q in %q, not about %s", vendor, extensions.Clean(m.GetName(), 80),
			extensions.Clean(m.GetWorkspace(), 80), nameOf(id)).WithRemedy("try again; if this persists, check the gateway")
	}
	return nil
}

// list reads the account's sandboxes page by page. Pages are counted, so each begins with the last one of the page before: if it
// does not, something was added or removed meanwhile, and the list may lack others.
func (b *backend) list(ctx context.Context) (all []*gateway.Sandbox, err error) {
	seen, last := 0, ""
	err = rest.Pages(vendor, func(string) (string, error) {
		from := max(seen-1, 0)
		out, err := b.gateway.ListSandboxes(ctx, &gateway.ListSandboxesRequest{Limit: pageSize, Offset: uint32(from), Workspace: b.workspace,
			LabelSelector: extensions.LabelAccount + "=" + labels.Value(b.account)})
		if err != nil {
			return "", err
		}
		page := out.GetSandboxes()
		if seen > 0 {
			if len(page) == 0 || page[0].GetMetadata().GetId() != last {
				return "", extensions.Errorf(extensions.KindUnavailable, "the list of %s changed while it was read", vendor).WithRemedy("try again")
			}
			page = page[1:]
		}
		for _, s := range page {
			if refName.MatchString(s.GetMetadata().GetId()) {
				all = append(all, s)
			}
		}
		if len(page) == 0 {
			return "", nil
		}
		seen, last = seen+len(page), page[len(page)-1].GetMetadata().GetId()
		return strconv.Itoa(seen), nil
	})
	return all, err
}
