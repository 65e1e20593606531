package daytona

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

const (
	labelWorkDir = "sandboxer.workdir" // the workspace inside; absent where there is none
	labelDesktop = "sandboxer.desktop" // it has a desktop; absent otherwise
)

// labelsOf is what a new sandbox carries.
func labelsOf(spec extensions.Spec) map[string]string {
	m := labels.Of(spec)
	if d := spec.WorkDir(fieldWorkDir, defaultWorkDir); d != "" {
		m[labelWorkDir] = d
	}
	if slices.Contains(spec.Requires.Capabilities, extensions.RequireDesktop) {
		m[labelDesktop] = "yes"
	}
	return m
}

// look reads the sandbox of a handle, by its name if the handle has no more.
func (b *backend) look(ctx context.Context, h extensions.Handle) (*sandbox, error) {
	if err := h.CheckRef(Handler, handleVersion, refName); err != nil {
		return nil, err
	}
	return b.get(ctx, cmp.Or(h.Ref, string(h.ID)))
}

// get reads one sandbox by the vendor's id or its name. KindNotFound is the vendor's own word, that it is destroyed too.
func (b *backend) get(ctx context.Context, name string) (*sandbox, error) {
	s, err := b.act(ctx, http.MethodGet, name, nil)
	if err == nil && s.at(api.SandboxStateDestroyed) {
		err = extensions.Errorf(extensions.KindNotFound, "%s has destroyed %s", vendor, name)
	}
	return s, err
}

// is checks that an answer is about the sandbox of that id or name.
func is(name string) func(*sandbox) bool {
	return func(s *sandbox) bool { return refName.MatchString(s.Id) && (s.Id == name || s.Name == name) }
}

// list reads the account's sandboxes page by page, those that failed too.
func (b *backend) list(ctx context.Context) (all []*sandbox, err error) {
	ours, _ := json.Marshal(map[string]string{extensions.LabelAccount: b.account}) // texts
	type page struct {
		Items []*sandbox `json:"items"`
		Next  *string    `json:"nextCursor"`
	}
	query := url.Values{"labels": {string(ours)}, "limit": {"100"}, "includeErroredDeleted": {"true"}}
	err = rest.Pages(vendor, func(cursor string) (string, error) {
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		p, _, err := rest.Ask(ctx, b.control, rest.Call{Method: http.MethodGet, Path: []string{"sandbox"}, Query: query},
			func(p *page) bool { return p.Items != nil })
		if err != nil {
			return "", err
		}
		no := func(s *sandbox) bool { return !refName.MatchString(s.Id) || s.at(api.SandboxStateDestroyed) }
		all = append(all, slices.DeleteFunc(p.Items, no)...)
		return rest.Value(p.Next), nil
	})
	return all, err
}

// act calls a verb on a sandbox, with a body unless in is nil, and returns it as it is then.
func (b *backend) act(ctx context.Context, method, ref string, in any, verb ...string) (*sandbox, error) {
	s, _, err := rest.Ask(ctx, b.control, rest.Call{Method: method, Path: append([]string{"sandbox", ref}, verb...), In: in}, is(ref))
	return s, err
}

// minutes is the time that is left until the end, rounded up and never 0, which would mean forever.
func minutes(end time.Time) int { return int(max(deadline.Left(time.Now(), end, time.Minute), 1)) }

// stamp reads one of the vendor's times; zero if there is none.
func stamp(text string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, text)
	return t
}
