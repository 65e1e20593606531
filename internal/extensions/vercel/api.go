package vercel

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// The states of a sandbox and of its session, as spec/openapi.yaml has them.
const (
	pending      = "pending"
	running      = "running"
	snapshotting = "snapshotting"
	stopping     = "stopping"
	stopped      = "stopped"
)

// newSandbox is the body of a create. Times are in ms.
type newSandbox struct {
	ProjectID       string            `json:"projectId"`
	Name            string            `json:"name"`
	Ports           []int             `json:"ports"`
	Timeout         int64             `json:"timeout"`
	Resources       size              `json:"resources"`
	Persistent      bool              `json:"persistent"`
	Runtime         string            `json:"runtime,omitempty"`
	Image           string            `json:"image,omitempty"`
	Source          *source           `json:"source,omitempty"`
	NetworkPolicy   policy            `json:"networkPolicy"`
	Tags            map[string]string `json:"tags"`
	Region          string            `json:"region,omitempty"`
	FailoverRegions []string          `json:"failoverRegions"`
}

type size struct {
	VCPUs int64 `json:"vcpus"`
}

type source struct {
	Type       string `json:"type"`
	SnapshotID string `json:"snapshotId"`
}

// policy is a mode, or an allowlist.
type policy struct {
	Mode    string    `json:"mode,omitempty"`
	Allow   *[]string `json:"allow,omitempty"`
	Subnets *subnets  `json:"subnets,omitempty"`
}

type subnets struct {
	Allow []string `json:"allow"`
}

// sandbox is the vendor's record. Times are in ms since 1970, the totals are of all its sessions and final once it stopped.
type sandbox struct {
	Name             string            `json:"name"`
	Region           string            `json:"region"`
	VCPUs            float64           `json:"vcpus"`
	Memory           float64           `json:"memory"` // MiB
	CPUMillis        *float64          `json:"totalActiveCpuDurationMs"`
	EgressBytes      *float64          `json:"totalEgressBytes"`
	IngressBytes     *float64          `json:"totalIngressBytes"`
	ExpiresAt        float64           `json:"expiresAt"`
	CurrentSessionID string            `json:"currentSessionId"`
	Status           string            `json:"status"`
	StatusUpdatedAt  float64           `json:"statusUpdatedAt"`
	Tags             map[string]string `json:"tags"`
}

// session is one microVM.
type session struct {
	ID              string  `json:"id"`
	Region          string  `json:"region"`
	VCPUs           float64 `json:"vcpus"`
	Memory          float64 `json:"memory"`  // MiB
	Timeout         float64 `json:"timeout"` // ms
	Status          string  `json:"status"`
	StartedAt       float64 `json:"startedAt"`
	RequestedStopAt float64 `json:"requestedStopAt"`
	StoppedAt       float64 `json:"stoppedAt"`
	AbortedAt       float64 `json:"abortedAt"`
}

// route is a port that anybody can reach.
type route struct {
	URL  string `json:"url"`
	Port int    `json:"port"`
}

// whole is what the vendor tells of one sandbox. heard is when, by its clock; zero if it did not say.
type whole struct {
	Sandbox sandbox `json:"sandbox"`
	Session session `json:"session"`
	Routes  []route `json:"routes"`
	heard   time.Time
}

func at(ms float64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// of is the query of calls by name.
func (b *backend) of() url.Values { return url.Values{"teamId": {b.team}, "projectId": {b.project}} }

// get reads one sandbox and wakes none. KindNotFound is the vendor's own word, and it knows the project: it calls a wrong
// project not found as well.
func (b *backend) get(ctx context.Context, name string) (*whole, error) {
	var w whole
	query := b.of()
	query.Set("resume", "false")
	a, err := b.api.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"v2", "sandboxes", name}, Query: query, Out: &w,
		Is: func() bool { return w.Sandbox.Name == name && w.about() }})
	if extensions.IsKind(err, extensions.KindNotFound) {
		if _, lost := b.page(ctx, url.Values{"limit": {"1"}, "namePrefix": {name}}); lost != nil {
			return nil, lost
		}
	}
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(a.Header.Get("Date")); err == nil {
		w.heard = date.Add(time.Second) // it has whole seconds, cut off: nothing is heard before it began
	}
	return &w, nil
}

// about reports whether the session is the sandbox's own.
func (w *whole) about() bool {
	return w.Session.ID == w.Sandbox.CurrentSessionID && idName.MatchString(w.Session.ID)
}

// owned reads the sandbox of a handle and refuses one that carries another id.
func (b *backend) owned(ctx context.Context, h extensions.Handle) (*whole, error) {
	if err := h.Check(Handler, handleVersion); err != nil {
		return nil, err
	}
	w, err := b.get(ctx, h.Ref)
	if err != nil {
		return nil, err
	}
	if has, ok := b.ours(w.Sandbox); !ok || has[extensions.LabelID] != string(h.ID) {
		return nil, extensions.Errorf(extensions.KindConflict, "the sandbox %s at %s does not carry this sandbox's id", h.Ref, vendor).
			WithRemedy("check it at %s; sandboxer does not own it", vendor)
	}
	return w, nil
}

// runs is owned for what only a running sandbox can do.
func (b *backend) runs(ctx context.Context, h extensions.Handle) (*whole, error) {
	w, err := b.owned(ctx, h)
	switch {
	case err != nil:
		return nil, err
	case w.Session.Status == running:
		return w, nil
	case w.Session.Status == pending, w.Session.Status == snapshotting:
		return nil, extensions.Errorf(extensions.KindUnavailable, "the sandbox is %s", w.Session.Status).WithRemedy("try again in a moment")
	}
	return nil, extensions.Errorf(extensions.KindNotFound, "the sandbox has ended: %s says %s", vendor, extensions.Clean(w.Session.Status, 40))
}

// room is how many tags the vendor takes; what it allows as a value is not known, so they are short and plain.
var room = labels.Room{Labels: 5}

// ours returns the labels that a sandbox carries, if it is one of this account.
func (b *backend) ours(s sandbox) (map[string]string, bool) {
	id, ok := labels.Owner(s.Tags, b.account)
	all, err := labels.Unpack(s.Tags, room)
	if err != nil { // the rest of the labels decides nothing: without them, the sandbox is still ours
		all = map[string]string{}
	}
	all[extensions.LabelID] = string(id)
	return all, ok
}

// tags are what a new sandbox carries.
func tags(spec extensions.Spec) (map[string]string, error) {
	all := labels.Of(spec)
	if spec.Workspace.Access == extensions.AccessNone {
		all[labelBare] = "1"
	}
	return labels.Pack(all, room)
}

// labelBare marks a sandbox without a workspace.
const labelBare = "bare"

// page is a part of a listing, of sandboxes or of snapshots.
type page struct {
	Sandboxes  []sandbox  `json:"sandboxes"`
	Snapshots  []snapshot `json:"snapshots"`
	Pagination struct {
		Next string `json:"next"`
	} `json:"pagination"`
}

// list reads the account's sandboxes. The vendor filters by one tag only.
func (b *backend) list(ctx context.Context) ([]sandbox, error) {
	all, err := b.pages(ctx, url.Values{"tags": {extensions.LabelAccount + ":" + labels.Value(b.account)}})
	return all.Sandboxes, err
}

// pages reads a whole listing.
func (b *backend) pages(ctx context.Context, query url.Values, of ...string) (all page, err error) {
	query.Set("limit", "50")
	err = rest.Pages(vendor, func(cursor string) (string, error) {
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		p, err := b.page(ctx, query, of...)
		all.Sandboxes, all.Snapshots = append(all.Sandboxes, p.Sandboxes...), append(all.Snapshots, p.Snapshots...)
		return p.Pagination.Next, err
	})
	return all, err
}

func (b *backend) page(ctx context.Context, query url.Values, of ...string) (p page, err error) {
	query.Set("teamId", b.team)
	query.Set("project", b.project)
	_, err = b.api.Do(ctx, rest.Call{Method: http.MethodGet, Path: append([]string{"v2", "sandboxes"}, of...), Query: query, Out: &p})
	if extensions.IsKind(err, extensions.KindNotFound) {
		err = noProject(err)
	}
	return p, err
}

// into is a call into a session; what came of it is read with the sandbox. A nil in sends no body.
func (b *backend) into(id string, in any, verb ...string) rest.Call {
	return rest.Call{Method: http.MethodPost, Path: append([]string{"v2", "sandboxes", "sessions", id}, verb...),
		Query: url.Values{"teamId": {b.team}}, In: in}
}

// patch changes a sandbox.
func (b *backend) patch(ctx context.Context, name string, in any) error {
	_, err := b.api.Do(ctx, rest.Call{Method: http.MethodPatch, Path: []string{"v2", "sandboxes", name}, Query: b.of(), In: in})
	return err
}
