package daytonatest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// homes are the users of a sandbox.
var homes = map[string]string{"daytona": "/home/daytona"}

// sandbox is one of the organization's. Vendor.mu guards it.
type sandbox struct {
	*box.Box
	id, name, state, reason, target, snapshot string
	class, was                                string // was: the state before this one
	labels, env                               map[string]string
	blockAll                                  bool
	networks, domains                         *string
	cpu, gpu, memory, disk                    int
	gpuType                                   string
	dockerfile                                string
	contexts                                  []string
	autoStop, autoDelete                      int // minutes
	autoPause, autoArchive                    int
	taking                                    *snapshot // the one that is being taken
	desktop                                   bool
	made, changed, active, ends               time.Time
	looks                                     int // until the state changes by itself; below 0, it stays
	token                                     string
}

// listed is what lists show of a sandbox that has changed since.
type listed struct {
	until  time.Time
	fields map[string]any
}

type newSandbox struct {
	Name             string            `json:"name"`
	Snapshot         string            `json:"snapshot"`
	Env              map[string]string `json:"env"`
	Labels           map[string]string `json:"labels"`
	NetworkBlockAll  bool              `json:"networkBlockAll"`
	NetworkAllowList *string           `json:"networkAllowList"`
	DomainAllowList  *string           `json:"domainAllowList"`
	Target           string            `json:"target"`
	CPU              int               `json:"cpu"`
	GPU              int               `json:"gpu"`
	GPUType          []string          `json:"gpuType"`
	Memory           int               `json:"memory"`
	Disk             int               `json:"disk"`
	AutoStop         *int              `json:"autoStopInterval"`
	AutoDelete       *int              `json:"autoDeleteInterval"`
	AutoPause        *int              `json:"autoPauseInterval"`
	AutoArchive      *int              `json:"autoArchiveInterval"`
	TTL              int               `json:"ttlMinutes"`
	BuildInfo        *struct {
		Dockerfile string   `json:"dockerfileContent"`
		Contexts   []string `json:"contextHashes"`
	} `json:"buildInfo"`
}

var regions = map[string]bool{"us": true, "eu": true}

func (v *Vendor) create(_ *http.Request, body []byte) (any, error) {
	var want newSandbox
	if err := json.Unmarshal(body, &want); err != nil {
		return nil, err
	}
	s := &sandbox{name: want.Name, snapshot: want.Snapshot, labels: want.Labels, env: want.Env, blockAll: want.NetworkBlockAll,
		networks: want.NetworkAllowList, domains: want.DomainAllowList, target: want.Target, cpu: want.CPU, gpu: want.GPU,
		memory: want.Memory, disk: want.Disk, autoStop: 15, autoDelete: -1, autoArchive: 7 * 24 * 60, state: "creating", class: Container}
	from, err := v.choose(s, want)
	if err == nil {
		err = v.admit(s)
	}
	if err != nil {
		return nil, err
	}
	v.serial++
	var inside *box.Box
	if at := fmt.Sprintf("room%d", v.serial); from == nil || from.Box == nil {
		inside, err = v.shelf.New(at, homes)
	} else {
		inside, err = v.shelf.Copy(at, from.Root, homes)
	}
	if err != nil {
		return nil, err
	}
	now := v.clock.Now()
	s.Box, s.id = inside, fmt.Sprintf("%08x-0000-4000-8000-%012x", v.serial, rand.Uint64N(1<<48))
	s.made, s.changed, s.active, s.token = now, now, now, fmt.Sprintf("%032x", rand.Uint64())
	if s.name == "" {
		s.name = s.id
	}
	if want.TTL > 0 {
		s.ends = v.cut(now, now.Add(time.Duration(want.TTL)*time.Minute))
	}
	if s.looks = v.slow; v.misplace != "" {
		s.target, v.misplace = v.misplace, ""
	}
	v.sandboxes[s.id] = s
	v.creates++
	return v.shown(s, "Sandbox"), nil
}

// choose gives a sandbox what it was not asked for, refuses what cannot be, and returns the snapshot that it is made from.
func (v *Vendor) choose(s *sandbox, want newSandbox) (from *snapshot, err error) {
	if v.named(s.name) != nil && s.name != "" {
		return nil, fail(http.StatusConflict, "Sandbox with name "+s.name+" already exists")
	}
	for to, asked := range map[*int]*int{&s.autoStop: want.AutoStop, &s.autoDelete: want.AutoDelete, &s.autoPause: want.AutoPause,
		&s.autoArchive: want.AutoArchive} {
		if asked != nil {
			*to = *asked
		}
	}
	if s.target == "" {
		s.target = "us"
	}
	if !regions[s.target] {
		return nil, fail(http.StatusNotFound, "Region "+s.target+" not found")
	}
	if s.labels == nil {
		s.labels = map[string]string{}
	}
	if s.env == nil {
		s.env = map[string]string{}
	}
	if s.gpu > 0 && s.autoDelete != 0 {
		return nil, fail(http.StatusBadRequest, "GPU sandboxes must be ephemeral - set autoDeleteInterval to 0")
	}
	if len(want.GPUType) > 0 {
		s.gpuType = want.GPUType[0]
	}
	if want.BuildInfo != nil {
		s.dockerfile, s.contexts, s.state = want.BuildInfo.Dockerfile, want.BuildInfo.Contexts, "pending_build"
		for size, usual := range map[*int]int{&s.cpu: 1, &s.memory: 1, &s.disk: 3} {
			if *size == 0 {
				*size = usual
			}
		}
		return nil, nil
	}
	if s.snapshot == "" {
		s.snapshot = Snapshot
	}
	from = v.snapshotOf(s.snapshot)
	switch {
	case from == nil:
		return nil, fail(http.StatusBadRequest, "Snapshot "+s.snapshot+" not found. Did you add it through the Daytona Dashboard?")
	case from.state != "active":
		return nil, fail(http.StatusBadRequest, "Snapshot "+s.snapshot+" is "+from.state)
	case from.region != "" && from.region != s.target:
		return nil, fail(http.StatusBadRequest, "Snapshot "+s.snapshot+" is not available in region "+s.target)
	case s.cpu+s.gpu+s.memory+s.disk > 0:
		return nil, fail(http.StatusBadRequest, "Cannot specify Sandbox resources when using a snapshot")
	}
	s.cpu, s.memory, s.disk, s.class = from.cpu, from.memory, from.disk, from.class
	if s.class == VM && want.AutoStop == nil && want.AutoPause == nil {
		s.autoStop, s.autoPause = 0, 60
	}
	return from, nil
}

// admit refuses what is beyond the plan.
func (v *Vendor) admit(s *sandbox) error {
	now := v.clock.Now()
	v.recent = append(v.recent, now)
	for len(v.recent) > 0 && now.Sub(v.recent[0]) > time.Minute {
		v.recent = v.recent[1:]
	}
	if most := v.plan.CreatesPerMinute; most > 0 && len(v.recent) > most {
		return &failure{status: http.StatusTooManyRequests, message: "ThrottlerException: Too Many Requests", header: http.Header{
			"Retry-After": {"1"}, "X-Ratelimit-Limit-Sandbox-Create": {strconv.Itoa(most)}, "X-Ratelimit-Remaining-Sandbox-Create": {"0"}}}
	}
	return v.within(s, s)
}

// within refuses a sandbox whose run, as it is to be, is beyond the plan.
func (v *Vendor) within(s, as *sandbox) error {
	cpu, memory, disk := as.cpu, as.memory, as.disk
	for _, other := range v.sandboxes {
		if other != s {
			c, m, d := other.uses()
			cpu, memory, disk = cpu+c, memory+m, disk+d
		}
	}
	for _, of := range []struct {
		name         string
		sum, allowed int
		unit         string
	}{{"CPU", cpu, v.plan.CPU, ""}, {"memory", memory, v.plan.MemoryGiB, "GiB"}, {"disk", disk, v.plan.DiskGiB, "GiB"}} {
		if of.allowed > 0 && of.sum > of.allowed {
			return fail(http.StatusBadRequest, fmt.Sprintf("Total %s limit exceeded. Maximum allowed: %d%s.\nUpgrade your organization's tier",
				of.name, of.allowed, of.unit))
		}
	}
	return nil
}

// cut is an end that the organization's plan allows.
func (v *Vendor) cut(from, end time.Time) time.Time {
	if v.plan.MaxTTL < 0 {
		return time.Time{}
	}
	if latest := from.Add(v.plan.MaxTTL); v.plan.MaxTTL > 0 && end.After(latest) {
		return latest
	}
	return end
}

// named finds a sandbox by its id or its name.
func (v *Vendor) named(name string) *sandbox {
	for _, s := range v.sandboxes {
		if s.id == name || s.name == name {
			return s
		}
	}
	return nil
}

// shown is what a schema of the description has of a sandbox.
func (v *Vendor) shown(s *sandbox, schema string) map[string]any {
	out := map[string]any{"id": s.id, "organizationId": v.Organization, "name": s.name, "user": "daytona", "env": s.env, "labels": s.labels,
		"public": false, "networkBlockAll": s.blockAll, "target": s.target, "cpu": s.cpu, "gpu": s.gpu, "memory": s.memory, "disk": s.disk,
		"toolboxProxyUrl": v.ToolboxURL + "/toolbox", "state": s.state, "desiredState": "started", "autoStopInterval": s.autoStop,
		"autoDeleteInterval": s.autoDelete, "autoPauseInterval": s.autoPause, "autoArchiveInterval": s.autoArchive,
		"createdAt": stamp(s.made), "updatedAt": stamp(s.changed),
		"lastActivityAt": stamp(s.active), "sandboxClass": s.class, "daemonVersion": "0.190.0"}
	for name, text := range map[string]string{"snapshot": s.snapshot, "errorReason": s.reason, "gpuType": s.gpuType} {
		if text != "" {
			out[name] = text
		}
	}
	for name, text := range map[string]*string{"networkAllowList": s.networks, "domainAllowList": s.domains} {
		if text != nil {
			out[name] = *text
		}
	}
	if !s.ends.IsZero() {
		out["autoDestroyAt"] = stamp(s.ends)
	}
	return v.api.Only(schema, out)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
