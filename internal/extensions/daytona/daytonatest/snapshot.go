package daytonatest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// snapshot is one of the organization's. Vendor.mu guards it.
type snapshot struct {
	*box.Box                               // nil = the vendor's own, which has nothing
	id, name, state, class, region, source string
	cpu, memory, disk                      int
	made, used                             time.Time
	looks                                  int // until the state changes by itself
}

// The vendor's own snapshots, and the classes.
const (
	Snapshot   = "daytona-small"
	VMSnapshot = "daytona-vm-small"
	Container  = "container"
	VM         = "linux-vm"
)

// own are the snapshots that everybody has.
func own(cloud bool) map[string]*snapshot {
	all := map[string]*snapshot{"s-1": {id: "s-1", name: Snapshot, state: "active", class: Container, cpu: 1, memory: 1, disk: 3}}
	if cloud {
		all["s-2"] = &snapshot{id: "s-2", name: VMSnapshot, state: "active", class: VM, cpu: 1, memory: 2, disk: 8}
	}
	return all
}

// keep begins a snapshot. The cloud shows it from then on, the older version once it is whole.
func (v *Vendor) keep(s *sandbox, _ *http.Request, body []byte) (any, error) {
	var want struct {
		Name   string `json:"name"`
		Memory bool   `json:"includeMemory"`
	}
	if err := json.Unmarshal(body, &want); err != nil {
		return nil, err
	}
	needs := "stopped"
	if want.Memory {
		needs = "started"
	}
	switch {
	case want.Memory && s.class != VM:
		return nil, fail(http.StatusBadRequest, "includeMemory is only supported for VM sandboxes")
	case v.snapshotOf(want.Name) != nil:
		return nil, fail(http.StatusConflict, "Snapshot with name \""+want.Name+"\" already exists for this organization")
	case s.state == "snapshotting" || strings.HasSuffix(s.state, "ing"):
		return nil, fail(http.StatusBadRequest, "Sandbox state change in progress")
	case s.state != needs:
		return nil, fail(http.StatusBadRequest, "Sandbox must be in "+needs+" state to create a snapshot")
	}
	v.serial++
	room, err := v.shelf.Copy(fmt.Sprintf("room%d", v.serial), s.Root, homes)
	if err != nil {
		return nil, err
	}
	now := v.clock.Now()
	s.taking = &snapshot{Box: room, id: fmt.Sprintf("%08x-0000-4000-8000-%012x", v.serial, rand.Uint64N(1<<48)), name: want.Name,
		state: "snapshotting", class: s.class, region: s.target, source: s.id, cpu: s.cpu, memory: s.memory, disk: s.disk, made: now, used: now}
	if v.cloud {
		v.snapshots[s.taking.id] = s.taking
	}
	v.begin(s, "snapshotting")
	return v.shown(s, "Sandbox"), nil
}

// kept completes a snapshot.
func (v *Vendor) kept(s *sandbox) {
	s.taking.state = "active"
	v.snapshots[s.taking.id], s.taking = s.taking, nil
}

// snapshotOf finds a snapshot by its id or its name.
func (v *Vendor) snapshotOf(name string) *snapshot {
	for _, k := range v.snapshots {
		if k.id == name || k.name == name {
			return k
		}
	}
	return nil
}

func (v *Vendor) asSnapshot(k *snapshot) map[string]any {
	out := map[string]any{"id": k.id, "organizationId": v.Organization, "general": k.Box == nil, "name": k.name, "state": k.state, "size": 0.5,
		"entrypoint": nil, "cpu": k.cpu, "gpu": 0, "mem": k.memory, "disk": k.disk, "errorReason": nil, "createdAt": stamp(k.made),
		"updatedAt": stamp(k.made), "lastUsedAt": stamp(k.used), "sourceSandboxId": nil, "sandboxClass": k.class}
	if k.source != "" {
		out["sourceSandboxId"] = k.source
	}
	if k.region != "" {
		out["regionIds"] = []string{k.region}
	}
	return v.api.Only("SnapshotDto", out)
}

func (v *Vendor) noSnapshot(r *http.Request) error {
	return fail(http.StatusNotFound, "Snapshot with ID or name "+r.PathValue("id")+" not found")
}

func (v *Vendor) getSnapshot(r *http.Request, _ []byte) (any, error) {
	k := v.snapshotOf(r.PathValue("id"))
	if k == nil {
		return nil, v.noSnapshot(r)
	}
	out := v.asSnapshot(k)
	for _, s := range v.sandboxes {
		if s.taking == k {
			v.step(s)
		}
	}
	switch k.looks--; {
	case k.looks > 0:
	case k.state == "pending":
		k.state = "active"
	case k.state == "removing":
		v.forget(k)
	}
	return out, nil
}

func (v *Vendor) forget(k *snapshot) {
	v.do(k.Remove())
	delete(v.snapshots, k.id)
}

func (v *Vendor) deleteSnapshot(r *http.Request, _ []byte) (any, error) {
	k := v.snapshots[r.PathValue("id")]
	switch {
	case k == nil || k.Box == nil:
		return nil, v.noSnapshot(r)
	case k.state == "snapshotting", k.state == "removing":
		return nil, fail(http.StatusBadRequest, "Snapshot state change in progress")
	}
	k.state, k.looks = "removing", v.slow+1
	return map[string]any{}, nil
}

func (v *Vendor) activate(r *http.Request, _ []byte) (any, error) {
	k := v.snapshots[r.PathValue("id")]
	switch {
	case k == nil:
		return nil, v.noSnapshot(r)
	case k.state != "inactive":
		return nil, fail(http.StatusBadRequest, "Snapshot "+k.id+" is not inactive")
	}
	k.state, k.looks = "pending", v.slow+1
	return v.asSnapshot(k), nil
}

func (v *Vendor) listSnapshots(r *http.Request, _ []byte) (any, error) {
	items := []map[string]any{}
	for _, k := range v.snapshots {
		if strings.Contains(k.name, r.URL.Query().Get("name")) {
			items = append(items, v.asSnapshot(k))
		}
	}
	slices.SortFunc(items, func(a, b map[string]any) int { return strings.Compare(a["id"].(string), b["id"].(string)) })
	total, page, limit := len(items), 1, 100
	for name, to := range map[string]*int{"page": &page, "limit": &limit} {
		if text := r.URL.Query().Get(name); text != "" {
			*to, _ = strconv.Atoi(text)
		}
	}
	from := min((page-1)*limit, total)
	return map[string]any{"items": items[from:min(from+limit, total)], "total": total, "page": page,
		"totalPages": (total + limit - 1) / limit}, nil
}

// Snapshots are the names of those that were made, by id.
func (v *Vendor) Snapshots() map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := map[string]string{}
	for _, k := range v.snapshots {
		if k.Box != nil {
			all[k.id] = k.name
		}
	}
	return all
}

// RelabelSnapshot gives a snapshot another name behind everybody's back.
func (v *Vendor) RelabelSnapshot(id, name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.snapshots[id].name = name
}

// SetSnapshotState makes a snapshot be in a state.
func (v *Vendor) SetSnapshotState(id, state string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.snapshots[id].state = state
}
