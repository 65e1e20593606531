package verceltest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// images are those that the fake has, beside the default one.
var images = []string{"", "vercel/sandbox/universal:latest", "node:24", "python:3.14", "my-repo:v1"}

var runtimes = []string{"", "node22", "node24", "node26", "python3.13"}

const maxTags = 5 // of a sandbox

type newSandbox struct {
	ProjectID  string
	Name       string
	Ports      []int
	Timeout    *int64
	Resources  struct{ VCPUs *int }
	Persistent *bool
	Runtime    string
	Image      string
	Policy     map[string]any `json:"networkPolicy"`
	Env, Tags  map[string]string
	Region     string
	Failover   *[]string `json:"failoverRegions"`
	Source     struct{ Type, SnapshotID string }
}

func (v *Vendor) create(r *http.Request, body []byte) (answer, error) {
	var want newSandbox
	if err := decode(body, &want); err != nil {
		return answer{}, err
	}
	life, cpus := 5*time.Minute, 2
	if want.Timeout != nil {
		life = time.Duration(*want.Timeout) * time.Millisecond
	}
	if want.Resources.VCPUs != nil {
		cpus = *want.Resources.VCPUs
	}
	if want.Name == "" {
		want.Name = "sb-" + letters(16)
	}
	switch {
	case want.ProjectID != v.Project:
		return answer{}, fail(http.StatusNotFound, "not_found", "Project not found.")
	case len(want.Tags) > maxTags:
		return answer{}, fail(http.StatusBadRequest, "bad_request", "Too many tags.")
	case v.sandboxes[want.Name] != nil:
		return answer{}, fail(http.StatusBadRequest, "bad_request", fmt.Sprintf("A sandbox named %q already exists.", want.Name))
	case (want.Runtime != "") != strings.HasPrefix(r.URL.Path, "/v2/"):
		return answer{}, fail(http.StatusBadRequest, "bad_request", "A runtime belongs to v2, an image to v3.")
	case !slices.Contains(images, want.Image), !slices.Contains(runtimes, want.Runtime):
		return answer{}, fail(http.StatusNotFound, "image_not_found", "The image was not found.")
	case life <= 0, v.plan.Longest > 0 && life > v.plan.Longest:
		return answer{}, fail(http.StatusBadRequest, "sandbox_timeout_invalid", "The timeout is above what the plan allows.")
	}
	if err := v.admit(cpus); err != nil {
		return answer{}, err
	}
	policy, err := asTold(want.Policy)
	if err != nil {
		return answer{}, err
	}
	v.serial++
	room, err := v.room(want.Source.Type, want.Source.SnapshotID)
	if err != nil {
		return answer{}, err
	}
	s := &sandbox{Box: room, name: want.Name, sessionID: "sbx_" + letters(24), region: "iad1", vcpus: cpus,
		persistent: want.Persistent == nil || *want.Persistent, runtime: want.Runtime, image: want.Image, tags: maps.Clone(want.Tags),
		env: want.Env, policy: policy, status: "pending", made: v.clock.Now(), timeout: life, commands: map[string]*command{}}
	for _, region := range []string{want.Region, v.plan.Region} {
		if region != "" {
			s.region = region
		}
	}
	s.life, s.cut = context.WithCancel(context.Background())
	s.route(want.Ports)
	if v.lag.Begin == 0 {
		s.status, s.begun = "running", s.made
	}
	v.sandboxes[s.name] = s
	v.creates++
	return s.whole(), nil
}

// admit is room for one more: both of the vendor's meanings of 429.
func (v *Vendor) admit(cpus int) error {
	now, n := v.clock.Now(), 0
	v.recent = slices.DeleteFunc(v.recent, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if most := v.plan.VCPUsPerCycle; most > 0 && len(v.recent)+cpus > most {
		f := fail(http.StatusTooManyRequests, "rate_limited", "Too many vCPUs were allocated in the last minute.")
		f.header = http.Header{"Retry-After": {strconv.Itoa(1 + int(v.recent[0].Add(time.Minute).Sub(now).Seconds()))}}
		return f
	}
	for _, s := range v.sandboxes {
		if s.status == "running" || s.status == "pending" {
			n++
		}
	}
	if v.plan.Concurrent > 0 && n >= v.plan.Concurrent {
		return fail(http.StatusTooManyRequests, "sandbox_limit_reached", "The team has reached its limit of concurrent sandboxes.")
	}
	for range cpus {
		v.recent = append(v.recent, now)
	}
	return nil
}

// asTold is a network policy as the vendor tells it later.
func asTold(want map[string]any) (map[string]any, error) {
	if want == nil {
		return map[string]any{"mode": "allow-all"}, nil
	}
	if mode, ok := want["mode"]; ok {
		if len(want) > 1 || mode != "allow-all" && mode != "deny-all" {
			return nil, fail(http.StatusBadRequest, "bad_request", "Invalid network policy.")
		}
		return want, nil
	}
	out := map[string]any{"mode": "custom"}
	subnets, _ := want["subnets"].(map[string]any)
	for name, list := range map[string]any{"allowedDomains": want["allow"], "allowedCIDRs": subnets["allow"], "deniedCIDRs": subnets["deny"]} {
		if list != nil {
			out[name] = list
		}
	}
	return out, nil
}

func (v *Vendor) get(r *http.Request, _ []byte) (answer, error) {
	s, err := v.the(r)
	if err != nil {
		return answer{}, err
	}
	if r.URL.Query().Get("resume") != "false" && s.persistent && s.status == "stopped" {
		v.t.Errorf("a read resumed %s, which costs money", s.name)
	}
	return s.whole(), nil
}

func (v *Vendor) getSession(r *http.Request, _ []byte) (answer, error) {
	s, err := v.its(r, false)
	if err != nil {
		return answer{}, err
	}
	return answer{body: map[string]any{"session": s.session(), "routes": s.open()}}, nil
}

func (v *Vendor) remove(r *http.Request, _ []byte) (answer, error) {
	s, err := v.the(r)
	if err != nil {
		return answer{}, err
	}
	if s.status != "stopped" {
		return answer{}, fail(http.StatusUnprocessableEntity, "sandbox_stopping", "The sandbox has not stopped.")
	}
	delete(v.sandboxes, s.name)
	s.cut()
	return answer{body: map[string]any{"sandbox": s.told()}}, s.Remove()
}

func (v *Vendor) stop(r *http.Request, _ []byte) (answer, error) {
	s, err := v.its(r, false)
	switch {
	case err != nil:
		return answer{}, err
	case s.status == "stopping", s.status == "snapshotting":
		return answer{}, fail(http.StatusUnprocessableEntity, "sandbox_stopping", "The sandbox is stopping.")
	case s.status == "stopped":
		return answer{}, fail(http.StatusGone, "sandbox_stopped", "The sandbox has stopped.")
	case s.begun.IsZero():
		s.begun = v.clock.Now()
	}
	v.halt(s, v.clock.Now())
	return answer{body: map[string]any{"session": s.session(), "sandbox": s.told()}}, nil
}

func (v *Vendor) extend(r *http.Request, body []byte) (answer, error) {
	var want struct{ Duration int64 }
	s, err := v.its(r, true)
	if err == nil {
		err = decode(body, &want)
	}
	if err != nil {
		return answer{}, err
	}
	longer := s.timeout + time.Duration(want.Duration)*time.Millisecond
	if want.Duration <= 0 || v.plan.Longest > 0 && longer > v.plan.Longest {
		return answer{}, fail(http.StatusBadRequest, "sandbox_timeout_invalid", "The timeout is above what the plan allows.")
	}
	s.timeout = longer
	return answer{body: map[string]any{"session": s.session()}}, nil
}

func (v *Vendor) setPolicy(r *http.Request, body []byte) (answer, error) {
	var want map[string]any
	s, err := v.its(r, true)
	if err == nil {
		err = decode(body, &want)
	}
	if err == nil {
		s.policy, err = asTold(want)
	}
	if err != nil {
		return answer{}, err
	}
	return answer{body: map[string]any{"session": s.session()}}, nil
}

func (v *Vendor) patch(r *http.Request, body []byte) (answer, error) {
	var want struct {
		Ports *[]int
		Tags  map[string]string
	}
	s, err := v.the(r)
	if err == nil {
		err = decode(body, &want)
	}
	if err != nil {
		return answer{}, err
	}
	if want.Ports != nil {
		s.route(*want.Ports)
	}
	if want.Tags != nil {
		if len(want.Tags) > maxTags {
			return answer{}, fail(http.StatusBadRequest, "bad_request", "Too many tags.")
		}
		s.tags = want.Tags
	}
	return answer{body: map[string]any{"sandbox": s.told(), "routes": s.open()}}, nil
}

// route opens these ports and no others. One that was open keeps its address.
func (s *sandbox) route(ports []int) {
	old := s.routes
	s.routes = nil
	for _, port := range ports {
		r := route{port, "sb-" + letters(16)}
		if i := slices.IndexFunc(old, func(o route) bool { return o.port == port }); i >= 0 {
			r = old[i]
		}
		s.routes = append(s.routes, r)
	}
}

// ordered are all sandboxes, the newest first.
func (v *Vendor) ordered() []*sandbox {
	all := slices.Collect(maps.Values(v.sandboxes))
	slices.SortFunc(all, func(a, b *sandbox) int { return strings.Compare(key(b), key(a)) })
	return all
}

func key(s *sandbox) string { return fmt.Sprintf("%020d-%s", s.made.UnixNano(), s.name) }

var tagFilter = regexp.MustCompile(`^([^:]+):(.*)$`)

func (v *Vendor) list(r *http.Request, _ []byte) (answer, error) {
	query := r.URL.Query()
	limit := 20
	if n, err := strconv.Atoi(query.Get("limit")); err == nil {
		limit = min(n, 50)
	}
	tag := tagFilter.FindStringSubmatch(query.Get("tags"))
	if len(query["tags"]) > 1 || query.Has("tags") && tag == nil {
		return answer{}, fail(http.StatusBadRequest, "bad_request", "Filtering by multiple tags is not supported.")
	}
	out, cursor, next := []map[string]any{}, query.Get("cursor"), any(nil)
	for _, s := range v.ordered() {
		if v.clock.Now().Before(s.made.Add(v.lag.List)) || !strings.HasPrefix(s.name, query.Get("namePrefix")) ||
			tag != nil && s.tags[tag[1]] != tag[2] ||
			cursor != "" && key(s) >= cursor {
			continue
		}
		if len(out) == limit {
			next = v.behind(out)
			break
		}
		out = append(out, s.told())
	}
	return answer{body: map[string]any{"sandboxes": out, "pagination": map[string]any{"count": len(out), "next": next}}}, nil
}

// behind is where the next page begins: behind the last of this one.
func (v *Vendor) behind(page []map[string]any) string {
	return key(v.sandboxes[page[len(page)-1]["name"].(string)])
}
