package daytona

import (
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
	if d := workDirOf(spec); d != "" {
		m[labelWorkDir] = d
	}
	if slices.Contains(spec.Requires.Capabilities, extensions.RequireDesktop) {
		m[labelDesktop] = "yes"
	}
	return m
}

// ours returns the id that a sandbox carries, if it is one of this account.
func (b *backend) ours(s *sandbox) (extensions.ID, bool) {
	if s.Labels[extensions.LabelAccount] != b.account {
		return "", false
	}
	id, err := extensions.ParseID(s.Labels[extensions.LabelID])
	return id, err == nil
}

// get reads one sandbox by the vendor's id or its name. KindNotFound is the vendor's own word, that it is destroyed too.
func (b *backend) get(ctx context.Context, name string) (*sandbox, error) {
	var s sandbox
	_, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"sandbox", name}, Out: &s, Is: s.is(name)})
	if err != nil {
		return nil, err
	}
	if s.state() == api.SandboxStateDestroyed {
		return nil, extensions.Errorf(extensions.KindNotFound, "%s has destroyed %s", vendor, name)
	}
	return &s, nil
}

// is checks that an answer is about the sandbox of that id or name, "" = any.
func (s *sandbox) is(name string) func() bool {
	return func() bool { return refName.MatchString(s.Id) && (name == "" || s.Id == name || s.Name == name) }
}

// list reads the account's sandboxes page by page, those that failed too.
func (b *backend) list(ctx context.Context) (all []sandbox, err error) {
	ours, err := json.Marshal(map[string]string{extensions.LabelAccount: b.account})
	if err != nil {
		return nil, err
	}
	query := url.Values{"labels": {string(ours)}, "limit": {"100"}, "includeErroredDeleted": {"true"}}
	err = rest.Pages(vendor, func(cursor string) (string, error) {
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		var page struct {
			Items []sandbox `json:"items"`
			Next  *string   `json:"nextCursor"`
		}
		_, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"sandbox"}, Query: query, Out: &page,
			Is: func() bool { return page.Items != nil }})
		if err != nil {
			return "", err
		}
		for _, s := range page.Items {
			if _, ok := b.ours(&s); ok && refName.MatchString(s.Id) && s.state() != api.SandboxStateDestroyed {
				all = append(all, s)
			}
		}
		if page.Next == nil {
			return "", nil
		}
		return *page.Next, nil
	})
	return all, err
}

// act calls a verb on a sandbox, with a body unless in is nil, and returns it as it is then.
func (b *backend) act(ctx context.Context, method, ref string, in any, verb ...string) (*sandbox, error) {
	var s sandbox
	_, err := b.control.Do(ctx, rest.Call{Method: method, Path: append([]string{"sandbox", ref}, verb...), In: in, Out: &s, Is: s.is(ref)})
	return &s, err
}

// minutes is the time that is left until the end, rounded up and never 0, which would mean forever.
func minutes(end time.Time) int64 { return max(deadline.Left(time.Now(), end, time.Minute), 1) }
