package life

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/workspace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// standing returns the live sandbox that a request reuses; nil if there is none. It waits for an operation on it, and
// cleans up one that has ended, as a create would.
func (m *Manager) standing(ctx context.Context, req plan.Request, notify notice.Notify) (*Sandbox, error) {
	asked, err := plan.Ask(m.catalog.Profiles, req)
	if err != nil {
		return nil, err
	}
	l, err := m.recovered(ctx, notify)
	if err != nil {
		return nil, err
	}
	told := false
	for {
		row, err := l.ByName(ctx, m.account, req.Name)
		if absent(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		settled, wait, err := m.settleTaken(ctx, l, row, notify)
		switch {
		case err != nil:
			return nil, err
		case !settled && !wait:
			return m.reuse(ctx, l, asked, row, notify)
		case wait && !told:
			notify.Tell("Waiting for another run", "%s", m.nameOwner(row).Error())
			told = true
		}
		if wait {
			if err := book.WaitForOthers(ctx); err != nil {
				return nil, extensions.Classify("create", "", row.ID, err)
			}
		}
	}
}

// reuse returns a live sandbox to a request that it fits, and refuses one that it does not fit, with what differs.
func (m *Manager) reuse(ctx context.Context, l *ledger.Ledger, asked *plan.Asked, row ledger.Sandbox, notify notice.Notify) (*Sandbox,
	error) {
	had, err := requestOf(row)
	if err != nil {
		return nil, err
	}
	var differs []string
	req, r := asked.Request, asked.Resolved
	if had.OnConflict != plan.OnConflictReuse {
		differs = append(differs, "another on_conflict than reuse")
	}
	for _, d := range []struct {
		what string
		same bool
	}{
		{"another profile", row.Profile == r.ID && row.ProfileVersion == r.Version},
		{"other inputs", bytes.Equal(mustJSON(specOf(row).Inputs), mustJSON(r.Spec.Inputs))},
		{"another extension", req.Extension == "" || req.Extension == row.Extension},
		{"another isolation", req.Isolation == had.Isolation},
	} {
		if !d.same {
			differs = append(differs, d.what)
		}
	}
	if len(differs) == 0 && !madeAs(row, had, asked) {
		differs = append(differs, "another specification: the profile, the env or the secrets have changed since")
	}
	if len(differs) > 0 {
		err := extensions.Errorf(extensions.KindConflict, "%w; it cannot be reused, because it has %s", m.nameOwner(row),
			strings.Join(differs, ", "))
		err.ID = row.ID
		return nil, err.WithRemedy("choose another name, or destroy this sandbox: sandboxer sandbox destroy %s", row.ID)
	}
	if req.TTL != "" && asked.TTL != row.TTL {
		notify.Tell("The sandbox keeps its deadline", "%s ends at %s; `sandboxer sandbox extend` moves its deadline", row.ID,
			row.ExpiresAt.UTC().Format(time.RFC3339))
	}
	s := m.sealed(ctx, l, row)
	return &s, nil
}

// Here names a relative folder of the workspace by its place: from another folder, it would be another one.
func (m *Manager) Here(req plan.Request) (plan.Request, error) {
	return m.here(req, &extensions.ExecRequest{})
}

// here is Here, and in direct mode without a workspace of its own lets a command start where its caller is.
func (m *Manager) here(req plan.Request, cmd *extensions.ExecRequest) (plan.Request, error) {
	r, err := plan.Merge(m.catalog.Profiles, req)
	if err != nil {
		return req, err
	}
	repo := r.Spec.Workspace.Repo
	if repo == "" && r.Spec.Direct && !filepath.IsAbs(cmd.Dir) {
		cmd.Dir, err = filepath.Abs(cmd.Dir)
		return req, err
	}
	if repo == "" || filepath.IsAbs(repo) || strings.HasPrefix(repo, "~") || !workspace.IsFolder(repo) {
		return req, nil
	}
	if repo, err = filepath.Abs(repo); err != nil {
		return req, err
	}
	inputs := maps.Clone(req.Inputs)
	if inputs == nil {
		inputs = map[string]any{}
	}
	inputs[profile.InputRepo] = repo
	req.Inputs = inputs
	return req, nil
}
