package life

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/secretref"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/workspace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxPlannedBytes limits, in bytes, the workspace that a plan packs to check it. A larger one is checked
// when the create packs it.
const maxPlannedBytes = 32 << 20

// sources are the streams a sandbox's files come from.
type sources struct {
	workspace *workspace.Source // nil = empty, or not known yet
	bundle    *workspace.Source // nil = the profile has none
	done      func()            // releases their folder; nil = it is not ours
}

func (s sources) close() {
	for _, f := range []*workspace.Source{s.workspace, s.bundle} {
		if f != nil {
			_ = f.Close() // a private temporary file
		}
	}
	if s.done != nil {
		s.done()
	}
}

// openSources packs the workspace and the profile's bundle and lets the places check them before anything
// is recorded: what is unreadable or refused leaves no trace.
func (c *creation) openSources(ctx context.Context, notify notice.Notify) error {
	spec := c.decision.Resolved.Spec
	if source := c.decision.Evidence.Source; source != nil { // a fork has its source's files
		spec.Workspace.Repo, c.base = "", source.WorkspaceBase
	}
	var opts workspace.Options
	err := c.m.forkable(ctx, c.decision)
	if err != nil {
		return err
	}
	if spec.Workspace.Repo != "" || spec.Bundle() != "" {
		if opts.SpoolDir, c.sources.done, err = c.m.scratch.Open(); err != nil {
			return err
		}
	}
	if c.sources.bundle, err = c.m.openBundle(ctx, c.decision.Resolved, opts); err != nil {
		return err
	}
	if spec.Workspace.Repo != "" {
		opts.FullHistory = slices.Contains(spec.Requires.Capabilities, extensions.RequireFullHistory)
		if c.sources.workspace, err = workspace.Open(ctx, spec.Workspace.Repo, spec.Workspace.Ref, opts); err != nil {
			return err
		}
		manifest := c.sources.workspace.Manifest()
		if skipped := manifest.Skipped; len(skipped) > 0 {
			notify.Tell("Some files are not part of the workspace", "%d were skipped, the first: %s (%s)", len(skipped), skipped[0].Path,
				skipped[0].Reason)
		}
		if spec.Workspace.Mode == extensions.WorkspaceMirror && workspace.IsFolder(spec.Workspace.Repo) {
			if c.base, err = workspace.EncodeBase(manifest); err != nil {
				return err
			}
		}
	}
	notes, err := c.m.checkChoices(ctx, c.decision, c.sources, &c.checked)
	if n, ok := leftOut(notes); ok && c.sources.bundle == nil && !workspace.IsFolder(spec.Workspace.Repo) { // no plan saw these files
		notify.Tell(n.Summary, "%s", n.Detail)
	}
	return err
}

// forkable asks the place whether the source of a fork can be forked now, before anything is recorded.
func (m *Manager) forkable(ctx context.Context, d *plan.Decision) error {
	source := d.Evidence.Source
	if source == nil {
		return nil
	}
	b, err := m.places.Open(ctx, placeOf(*source))
	if err == nil {
		err = b.CanFork(ctx, source.Handle)
	}
	if absent(err) {
		err = extensions.Errorf(extensions.KindInvalid, "sandbox %s cannot be forked: it is no longer there: %w", source.ID, err).
			WithRemedy("choose a live sandbox, or remove from_sandbox")
	}
	return extensions.AtField("from_sandbox", err)
}

// openBundle packs the folder beside the profile; nil if it names none.
func (m *Manager) openBundle(ctx context.Context, r *profile.Resolved, opts workspace.Options) (*workspace.Source, error) {
	name := r.Spec.Bundle()
	if name == "" {
		return nil, nil
	}
	b, err := m.catalog.OpenBundle(r.ID+"@"+r.Version, name, opts.SpoolDir)
	if err != nil {
		return nil, err
	}
	src, err := workspace.OpenRoot(ctx, b.Root, b.Origin, opts)
	return src, extensions.AtField("profile", errors.Join(err, b.Close()))
}

// checkPlanned checks the spec against what is already on this machine: the bundle, and a workspace that
// is a folder.
func (m *Manager) checkPlanned(ctx context.Context, d *plan.Decision) error {
	if !m.places.ChecksSpecs(d.Choice.Chosen.Handler) {
		return nil
	}
	var src sources
	defer func() { src.close() }()
	opts := workspace.Options{SpoolDir: os.TempDir(), MaxBytes: maxPlannedBytes} // a plan leaves the state folder alone
	var err error
	if src.bundle, err = m.openBundle(ctx, d.Resolved, opts); err != nil {
		return err
	}
	needed := d.Evidence.Source == nil && (src.bundle == nil || d.Resolved.Spec.BuildsFromWorkspace())
	if w := d.Resolved.Spec.Workspace; w.Repo != "" && needed && workspace.IsFolder(w.Repo) {
		src.workspace, err = workspace.Open(ctx, w.Repo, w.Ref, opts)
		if err != nil {
			src.workspace = nil // too large, or changing: the create reports it
		}
	}
	var checked verdicts
	notes, err := m.checkChoices(ctx, d, src, &checked)
	if n, ok := leftOut(notes); ok {
		d.Notices = append(d.Notices, n)
	}
	return err
}

// leftOut makes one notice of what an extension leaves out of a request.
func leftOut(notes []string) (notice.Notice, bool) {
	return notice.Notice{Summary: "Parts of the stack have no effect", Detail: strings.Join(notes, "\n")}, len(notes) > 0
}

// verdicts hold what places said of the spec before anything was recorded; nil = accepted.
type verdicts map[*plan.Offer]error

// checkChoices checks the spec at the first choice and, while it is only not for that place, at the next.
// It keeps the verdicts. The error is of what no place may be asked for.
func (m *Manager) checkChoices(ctx context.Context, d *plan.Decision, src sources, to *verdicts) (notes []string, err error) {
	*to = verdicts{}
	var refusals []error
	for _, offer := range d.Offers {
		notes, err = m.checkSpec(ctx, offer, src)
		(*to)[offer] = err
		if err == nil {
			return notes, nil
		}
		if refusals = append(refusals, err); !notHere(err) {
			break
		}
	}
	return nil, errors.Join(refusals...)
}

// checkSpec lets the extension refuse the spec before provisioning, and say what it would leave out.
func (m *Manager) checkSpec(ctx context.Context, offer *plan.Offer, src sources) (notes []string, err error) {
	if !m.places.ChecksSpecs(offer.Handler) {
		return nil, nil
	}
	notes, err = m.places.CheckSpec(ctx, m.placeOfCandidate(offer.Candidate), src.into(offer.Spec))
	return notes, extensions.AtField("profile", err)
}

// into returns spec with the streams.
func (s sources) into(spec extensions.Spec) extensions.Spec {
	if s.workspace != nil {
		spec.Workspace.Source = s.workspace
	}
	if s.bundle == nil {
		return spec
	}
	if spec.Compose != nil {
		with := *spec.Compose
		with.BundleSource = s.bundle
		spec.Compose = &with
	}
	return spec.WithImages(func(i extensions.Image) extensions.Image {
		if i.Bundle != "" {
			i.BundleSource = s.bundle
		}
		return i
	})
}

// secrets returns the secrets that become environment variables inside: the caller's values and the
// profile's references, resolved now and kept in memory only. A caller's value wins over a reference of
// the same name.
func (m *Manager) secrets(ctx context.Context, d *plan.Decision) (map[string]extensions.Secret, error) {
	out := maps.Clone(d.Request.Secrets)
	if out == nil {
		out = map[string]extensions.Secret{}
	}
	for _, r := range d.Resolved.SecretRefs {
		if _, ok := out[r.Name]; ok {
			continue
		}
		s, err := secretref.Resolve(ctx, r.Ref, secretref.Options{})
		if err != nil {
			return nil, err
		}
		out[r.Name] = s
	}
	return out, nil
}
