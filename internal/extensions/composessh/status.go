package composessh

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// States of a manifest; any other means that it is still being created.
const (
	stateWaiting = "waiting" // started, not yet ready
	stateReady   = "ready"
	stateFailed  = "failed"
	stateExpired = "expired" // a tombstone: only the record is left
)

// Status implements extensions.Backend with one exec, for any number of handles.
func (b *Backend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	list, err := b.status(ctx, handles)
	return list, failed("status", "", err)
}

func (b *Backend) status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if handles != nil && len(handles) == 0 {
		return []extensions.Observation{}, nil
	}
	targets := make([]target, len(handles))
	faults := make([]error, len(handles))
	ids := make([]string, 0, len(handles))
	root := b.settings.root
	for i, h := range handles {
		if targets[i], faults[i] = b.resolve(h); faults[i] == nil {
			root = targets[i].root
			ids = append(ids, string(h.ID))
		}
	}
	if handles != nil && len(ids) == 0 {
		return observeFaults(handles, faults), nil
	}
	// Ask separately for handles of another root than the first's.
	for i := range handles {
		if faults[i] == nil && targets[i].root != root {
			return b.statusByRoot(ctx, handles, targets, faults)
		}
	}
	vars := map[string]string{"root": root, "ids": strings.Join(ids, " "), "all": ""}
	if handles == nil {
		vars["all"] = "1"
	}
	files := statusFiles
	if b.host.AllowFirewall {
		files, vars["guarded"] = guardedStatusFiles, "1"
	}
	a, err := b.call(ctx, operation{files: files, vars: vars})
	if err != nil {
		return nil, err
	}
	records, containers := parseRecords(a.Records), parseContainers(a)
	if handles == nil {
		return b.observeAll(records, containers), nil
	}
	list := observeFaults(handles, faults)
	for i, h := range handles {
		if faults[i] == nil {
			r, known := records[h.ID]
			list[i] = b.observe(h, r, known, containers[h.ID])
		}
	}
	return list, nil
}

// statusByRoot asks once for each root: a binding's config changed while sandboxes of the old one live on.
func (b *Backend) statusByRoot(ctx context.Context, handles []extensions.Handle, targets []target,
	faults []error) ([]extensions.Observation, error) {
	list := observeFaults(handles, faults)
	byRoot := map[string][]int{}
	for i := range handles {
		if faults[i] == nil {
			byRoot[targets[i].root] = append(byRoot[targets[i].root], i)
		}
	}
	for _, indices := range byRoot {
		group := make([]extensions.Handle, len(indices))
		for n, i := range indices {
			group[n] = handles[i]
		}
		part, err := b.status(ctx, group)
		if err != nil {
			return nil, err
		}
		for n, i := range indices {
			list[i] = part[n]
		}
	}
	return list, nil
}

// observeFaults reports handles that cannot be asked for at all.
func observeFaults(handles []extensions.Handle, faults []error) []extensions.Observation {
	list := make([]extensions.Observation, len(handles))
	for i, h := range handles {
		list[i] = extensions.Observation{ID: h.ID, Handle: h, Phase: extensions.PhaseUnreachable}
		if faults[i] != nil {
			list[i].Reason, list[i].Err = faults[i].Error(), failed("status", h.ID, faults[i])
		}
	}
	return list
}

func (b *Backend) observeAll(records map[extensions.ID]record, containers map[extensions.ID][]container) []extensions.Observation {
	ids := []extensions.ID{}
	for id, r := range records {
		if account, ok := r.values["account"]; ok && account == b.settings.account {
			ids = append(ids, id)
		}
	}
	for id, list := range containers {
		if _, known := records[id]; !known && list[0].account == b.settings.account {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	all := make([]extensions.Observation, 0, len(ids))
	for _, id := range ids {
		r, known := records[id]
		all = append(all, b.observe(b.handle(id), r, known, containers[id]))
	}
	return all
}

// observeOne reads an answer about one sandbox.
func (b *Backend) observeOne(h extensions.Handle, a answer) extensions.Observation {
	r, known := parseRecords(a.Records)[h.ID]
	o := b.observe(h, r, known, parseContainers(a)[h.ID])
	for line := range strings.Lines(a.Warnings) {
		o.Reason = strings.TrimPrefix(o.Reason+"; "+extensions.Clean(strings.TrimSpace(line), maxMessage), "; ")
	}
	return o
}

// observe judges one sandbox by its record and its containers.
func (b *Backend) observe(h extensions.Handle, r record, known bool, list []container) extensions.Observation {
	o := extensions.Observation{ID: h.ID, Handle: h, StartedAt: fromMillis(r.values["started"])}
	if !known {
		if len(list) == 0 {
			o.Phase = extensions.PhaseAbsent
			return o
		}
		o.Generation, _ = strconv.ParseInt(list[0].generation, 10, 64)
		o.Phase, o.Reason = extensions.PhaseFailed, "its folder on the host and its workspace are gone, but its containers exist"
		return o
	}
	o.Generation, _ = strconv.ParseInt(r.values["generation"], 10, 64)
	o.Deadline = r.deadline()
	left, err := strconv.ParseInt(r.values["left"], 10, 64)
	overdue := err == nil && left <= 0
	switch state := r.values["state"]; {
	case slices.Contains([]string{stateReady, stateWaiting, stateExpired}, state) && r.ends(&o, list):
	case r.idled(&o):
		if o.Phase = extensions.PhaseExpired; state == stateExpired {
			o.EndedAt = fromMillis(r.values["ended"])
		}
	case state == stateExpired:
		o.Phase, o.Reason, o.EndedAt = extensions.PhaseExpired, "its deadline passed", fromMillis(r.values["ended"])
	case overdue:
		o.Phase, o.Reason, o.EndedAt = extensions.PhaseExpired, "its deadline passed; the host is about to remove it", o.Deadline
	case state == stateReady:
		o.Phase, o.Since, o.IdleSince = extensions.PhaseReady, fromMillis(r.values["mode_since"]), fromMillis(r.values["idle_since"])
		if r.paused() {
			o.Phase, o.IdleSince = extensions.PhasePaused, time.Time{}
		}
		if o.Reason = r.expectation(h.ID).judge(list); o.Reason != "" {
			o.Phase = extensions.PhaseFailed
		} else {
			o.Reason = r.expectation(h.ID).unwell(list)
		}
	case r.busy != "" || state == stateWaiting:
		if o.Phase, o.Reason = extensions.PhaseProvisioning, ""; state == stateWaiting && r.busy == "" {
			if why := r.expectation(h.ID).judge(list); why != "" {
				o.Phase, o.Reason = extensions.PhaseFailed, why
			}
		}
	case state == stateFailed:
		o.Phase, o.Reason = extensions.PhaseFailed, extensions.Clean(r.values["why"], maxMessage)
		for _, c := range list {
			if c.unhealthy() {
				o.Reason += c.health
				break
			}
		}
	default:
		o.Phase, o.Reason = extensions.PhaseFailed, "its creation was never finished"
	}
	if o.Phase == extensions.PhaseReady {
		o.Reachability = b.reach(h, r, list)
	}
	return o
}

// statusFiles make up the operation status.
var statusFiles = []string{"lease", "look", "timer", "survey", "status"}

// guardedStatusFiles are those for hosts that may hold rules of ours; a look restores lost rules.
var guardedStatusFiles = []string{"lease", "look", "timer", "toolbox", "rules", "firewall", "survey", "status"}

// Find implements extensions.Backend. It checks the folder and Docker's labels; absent means that neither has
// it.
func (b *Backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	h, err := b.find(ctx, id)
	return h, failed("find", id, err)
}

func (b *Backend) find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	if _, err := extensions.ParseID(string(id)); err != nil {
		return extensions.Handle{}, err
	}
	a, err := b.call(ctx, operation{id: id, files: findFiles})
	if err != nil {
		return extensions.Handle{}, err
	}
	if !a.Found {
		return extensions.Handle{}, extensions.Errorf(extensions.KindNotFound, "%s is not on the host %s", id, b.host.Name)
	}
	if a.Busy != "" {
		e := extensions.Errorf(extensions.KindConflict, "%s is busy: %s runs on the host", id, extensions.Clean(a.Busy, 40))
		e.RetryAfter = busyPause
		return extensions.Handle{}, e.WithRemedy("wait until it has ended")
	}
	return b.handle(id), nil
}

// busyPause is when to look again after an operation in progress.
const busyPause = time.Second

// findFiles make up the operation find.
var findFiles = []string{"find"}
