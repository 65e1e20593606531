package engine

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/workspace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxPlannedBytes bounds the workspace that a plan packs to judge it. A larger
// one is judged when it is packed anyway.
const maxPlannedBytes = 32 << 20

// sources are the streams a sandbox's files come from.
type sources struct {
	workspace *workspace.Source // nil = empty, or not known yet
	bundle    *workspace.Source // nil = the profile has none
	done      func()            // with the folder they are in; nil = it is not ours
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

// openSources packs the workspace and the profile's bundle and has the first
// choice judge them, before anything is recorded: what cannot be read or is
// refused leaves no trace.
func (c *creation) openSources(ctx context.Context, e *Engine, notify Notify) error {
	spec := c.p.resolved.Spec
	var opts workspace.Options
	var err error
	if spec.Workspace.Repo != "" || bundled(spec) {
		if opts.SpoolDir, c.sources.done, err = e.scratch.Open(); err != nil {
			return err
		}
	}
	if c.sources.bundle, err = e.openBundle(ctx, c.p.resolved, opts); err != nil {
		return err
	}
	if spec.Workspace.Repo != "" {
		opts.FullHistory = slices.Contains(spec.Requires.Capabilities, extensions.RequireFullHistory)
		if c.sources.workspace, err = workspace.Open(ctx, spec.Workspace.Repo, spec.Workspace.Ref, opts); err != nil {
			return err
		}
		manifest := c.sources.workspace.Manifest()
		if skipped := manifest.Skipped; len(skipped) > 0 {
			notify.Tell("Some files are not part of the workspace", "%d were left out, the first: %s (%s)", len(skipped), skipped[0].Path, skipped[0].Reason)
		}
		if spec.Workspace.Mode == extensions.WorkspaceMirror && workspace.IsFolder(spec.Workspace.Repo) {
			if c.base, err = workspace.EncodeBase(manifest); err != nil {
				return err
			}
		}
	}
	notes, err := e.checkSpec(ctx, c.p, c.p.decision.Chosen, c.sources)
	if n, ok := leftOut(notes); ok && c.sources.bundle == nil && !workspace.IsFolder(spec.Workspace.Repo) { // no plan saw these files
		notify.Tell(n.Summary, "%s", n.Detail)
	}
	return err
}

func bundled(s extensions.Spec) bool { return s.Compose != nil && s.Compose.Bundle != "" }

// openBundle packs the folder beside the profile; nil where it names none.
func (e *Engine) openBundle(ctx context.Context, r *profile.Resolved, opts workspace.Options) (*workspace.Source, error) {
	if !bundled(r.Spec) {
		return nil, nil
	}
	b, err := e.catalog.OpenBundle(r.ID+"@"+r.Version, r.Spec.Compose.Bundle, opts.SpoolDir)
	if err != nil {
		return nil, err
	}
	src, err := workspace.OpenRoot(ctx, b.Root, b.Origin, opts)
	return src, extensions.AtField("profile", errors.Join(err, b.Close()))
}

// checkPlanned judges the spec of the first choice by what is on this machine
// already: the bundle, and a workspace that is a folder.
func (e *Engine) checkPlanned(ctx context.Context, p *prepared) error {
	if !e.places.ChecksSpecs(p.decision.Chosen.Handler) {
		return nil
	}
	var src sources
	defer func() { src.close() }()
	opts := workspace.Options{SpoolDir: os.TempDir(), MaxBytes: maxPlannedBytes} // a plan leaves the state folder alone
	var err error
	if src.bundle, err = e.openBundle(ctx, p.resolved, opts); err != nil {
		return err
	}
	if w := p.resolved.Spec.Workspace; w.Repo != "" && src.bundle == nil && workspace.IsFolder(w.Repo) {
		src.workspace, err = workspace.Open(ctx, w.Repo, w.Ref, opts)
		if err != nil {
			src.workspace = nil // too large, or changing: the create tells
		}
	}
	notes, err := e.checkSpec(ctx, p, p.decision.Chosen, src)
	if n, ok := leftOut(notes); ok {
		p.notices = append(p.notices, n)
	}
	return err
}

// leftOut makes one notice of what an extension leaves out of a request.
func leftOut(notes []string) (Notice, bool) {
	return Notice{Summary: "Not all that the stack says is carried out", Detail: strings.Join(notes, "\n")}, len(notes) > 0
}

// checkSpec has the extension refuse the spec before it is asked for it, and
// say what of it is left out.
func (e *Engine) checkSpec(ctx context.Context, p *prepared, cand *route.Candidate, src sources) (notes []string, err error) {
	if !e.places.ChecksSpecs(cand.Handler) {
		return nil, nil
	}
	notes, err = e.places.CheckSpec(ctx, e.placeOfCandidate(cand), p.spec(cand, src))
	return notes, extensions.AtField("profile", err)
}

// spec is the resolved request for one place, without an identity.
func (p *prepared) spec(cand *route.Candidate, src sources) extensions.Spec {
	s := p.resolved.Spec
	s.Options = p.resolved.OptionsByExtension[cand.Binding]
	s.Region = cand.PlacedIn(p.resolved.Policy.Region)
	if src.workspace != nil {
		s.Workspace.Source = src.workspace
	}
	if src.bundle != nil {
		with := *s.Compose
		with.BundleSource = src.bundle
		s.Compose = &with
	}
	if s.FromSnapshot != nil && p.snapshot != nil {
		s.FromSnapshot = &extensions.SnapshotRef{ID: p.snapshot.ID, Handle: p.snapshot.Handle}
	}
	return s
}
