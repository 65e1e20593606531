package docker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Status implements extensions.Backend with two lists. Only what has ended is asked for once more.
func (b *Backend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	list, err := b.status(ctx, handles)
	return list, failed("status", "", err)
}

func (b *Backend) status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if handles != nil && len(handles) == 0 {
		return []extensions.Observation{}, nil
	}
	filter := having()
	switch {
	case handles == nil:
		filter = having(extensions.LabelAccount + "=" + b.settings.account)
	case len(handles) == 1:
		filter = havingID(handles[0].ID)
	}
	all, err := b.find(ctx, filter)
	if err != nil {
		return nil, err
	}
	list := []extensions.Observation{}
	if handles == nil {
		for id, found := range all {
			if found.none() {
				continue
			}
			h, err := b.handle(ctx, id)
			if err != nil {
				return nil, err
			}
			list = append(list, b.observe(ctx, h, *found))
		}
		return sorted(list), nil
	}
	for _, h := range handles {
		if err := b.resolve(ctx, h); err != nil {
			list = append(list, unseen(extensions.Observation{ID: h.ID, Handle: h}, err))
			continue
		}
		found := objects{id: h.ID}
		if all[h.ID] != nil {
			found = *all[h.ID]
		}
		list = append(list, b.observe(ctx, h, found))
	}
	return list, nil
}

// observed looks at one sandbox.
func (b *Backend) observed(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	found, err := b.look(ctx, h.ID)
	if err != nil {
		return extensions.Observation{}, err
	}
	o := b.observe(ctx, h, found)
	return o, o.Err
}

// unseen is an observation that failed, which is no verdict on the sandbox.
func unseen(o extensions.Observation, err error) extensions.Observation {
	o.Phase, o.Reason, o.Err = extensions.PhaseUnreachable, err.Error(), failed("status", o.ID, err)
	return o
}

// observe says what became of a sandbox.
func (b *Backend) observe(ctx context.Context, h extensions.Handle, found objects) extensions.Observation {
	o := extensions.Observation{ID: h.ID, Handle: h}
	agent := found.agent()
	at, whole := found.standing()
	runs, paused := found.in(container.StateRunning), found.in(container.StatePaused)
	if agent.ID != "" {
		o.StartedAt = time.Unix(agent.Created, 0).UTC()
	}
	switch {
	case found.none():
		o.Phase = extensions.PhaseAbsent
		return o
	case agent.ID == "":
		o.Phase, o.Reason = extensions.PhaseFailed, "the container of its agent is gone"
	case !whole:
		o.Phase, o.Reason = extensions.PhaseProvisioning, "its creation is under way, or was never finished"
		o.Deadline, _ = time.Parse(time.RFC3339, agent.Labels[extensions.LabelInitialExpires])
	case agent.State == container.StateRunning && (paused == "" || at.hold.thaw):
		o.Phase = extensions.PhaseReady
	case agent.State == container.StatePaused && at.hold.thaw: // for a moment
		o.Phase = extensions.PhaseReady
	case agent.State == container.StatePaused || agent.State == container.StateRunning:
		o.Phase = extensions.PhasePaused
		if runs != "" { // a run was killed on its way; what is shown as paused can be resumed as a whole
			o.Reason = fmt.Sprintf("it is paused, and the service %s still runs: pause or resume it again", runs)
		}
	default:
		end, err := b.ended(ctx, agent.ID)
		if err != nil {
			return unseen(o, err)
		}
		o.Phase, o.EndedAt, o.Reason = extensions.PhaseFailed, end.at, "the container of its agent "+end.why
		end.into(&o, at, agent.Labels)
	}
	if whole {
		o.Generation, o.Deadline, o.Since = at.generation, at.deadline, at.since
	}
	if o.Phase == extensions.PhaseReady {
		switch why, err := b.broken(ctx, found); {
		case err != nil:
			return unseen(o, err)
		case why != "":
			o.Phase, o.Reason = extensions.PhaseFailed, why
		}
	}
	switch {
	case o.Phase == extensions.PhaseReady:
		o.IdleSince = b.idleSince(ctx, agent)
		o.Reachability = extensions.Reachability{Host: b.settings.host, WorkDir: agent.Labels[labelWorkDir]}
	case (o.Phase == extensions.PhaseFailed || o.Phase == extensions.PhaseProvisioning) && !o.Deadline.IsZero() &&
		time.Now().After(o.Deadline):
		o.Phase = extensions.PhaseExpired
		if o.EndedAt.IsZero() || o.EndedAt.After(o.Deadline) {
			o.EndedAt = o.Deadline
		}
	}
	return o
}

// in names a service whose container is in a state, "" = none.
func (o objects) in(state container.ContainerState) string {
	for _, c := range o.containers {
		if c.State == state {
			return extensions.Clean(c.Labels[labelService], 80)
		}
	}
	return ""
}

// broken says what has failed of a sandbox that runs, "" = nothing. A service that ended successfully is done.
func (b *Backend) broken(ctx context.Context, found objects) (string, error) {
	for _, c := range found.containers {
		if c.State == container.StateRunning || c.State == container.StatePaused {
			continue
		}
		end, err := b.ended(ctx, c.ID)
		if err != nil {
			return "", err
		}
		if end.code != 0 || end.at.IsZero() {
			return fmt.Sprintf("the service %s %s", extensions.Clean(c.Labels[labelService], 80), end.why), nil
		}
	}
	if found.wired() && !slices.ContainsFunc(found.keepers, func(c container.Summary) bool { return c.State == container.StateRunning }) {
		return "its network is down: the container that keeps it up has ended", nil
	}
	return "", nil
}

// Find implements extensions.Backend.
func (b *Backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	h, err := b.findOne(ctx, id)
	return h, failed("find", id, err)
}

func (b *Backend) findOne(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	if _, err := extensions.ParseID(string(id)); err != nil {
		return extensions.Handle{}, err
	}
	found, err := b.lookEverywhere(ctx, id)
	if err != nil {
		return extensions.Handle{}, err
	}
	if found.none() {
		return extensions.Handle{}, extensions.Errorf(extensions.KindNotFound, "%s is not on the Docker engine at %s", id, b.engine.where)
	}
	return b.handle(ctx, id)
}
