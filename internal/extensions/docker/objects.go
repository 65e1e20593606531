package docker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// objects are what an engine holds of one sandbox.
type objects struct {
	id         extensions.ID
	containers []container.Summary
	keepers    []container.Summary // one, where the containers meet and nothing leaves; and what counts while it is made
	networks   []network.Summary
	kept       kept // claims, and what a fork is made of; only if they were asked for
	account    string
	strange    string // why something with its label may not be touched, "" = nothing
}

func (o objects) none() bool { return len(o.all())+len(o.networks)+len(o.kept.tags) == 0 }

// all are the containers, with the one that only keeps the network up.
func (o objects) all() []container.Summary { return slices.Concat(o.containers, o.keepers) }

// network reports that there is one whose name ends so.
func (o objects) network(tag string) bool {
	return slices.ContainsFunc(o.networks, func(n network.Summary) bool { return n.Name == string(o.id)+tag })
}

// wired reports that the containers meet, and nothing leaves.
func (o objects) wired() bool { return o.network(nameWire) }

// agent returns the container of the agent; its ID is "" if there is none.
func (o objects) agent() container.Summary {
	c, _ := o.service(extensions.AgentService)
	return c
}

func (o objects) service(name string) (container.Summary, bool) {
	for _, c := range o.containers {
		if c.Labels[labelService] == name {
			return c, true
		}
	}
	return container.Summary{}, false
}

func (o objects) standing() (standing, bool) { return parseStanding(o.id, nameOf(o.agent())) }

// nameOf returns a container's own name, and not what others link to it as.
func nameOf(c container.Summary) string {
	for _, n := range c.Names {
		if n = strings.TrimPrefix(n, "/"); !strings.Contains(n, "/") {
			return n
		}
	}
	return ""
}

// find lists the objects that the filter selects, by sandbox.
func (b *Backend) find(ctx context.Context, filter client.Filters) (map[extensions.ID]*objects, error) {
	var containers client.ContainerListResult
	var networks client.NetworkListResult
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		containers, err = b.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
		return err
	})
	both.Go(func() (err error) {
		networks, err = b.engine.NetworkList(ctx, client.NetworkListOptions{Filters: filter})
		return err
	})
	if err := both.Wait(); err != nil {
		return nil, asked(err)
	}
	all := map[extensions.ID]*objects{}
	of := func(l map[string]string) *objects {
		id, err := extensions.ParseID(l[extensions.LabelID])
		if err != nil {
			return nil
		}
		if all[id] == nil {
			all[id] = &objects{id: id}
		}
		all[id].account = cmp.Or(all[id].account, l[extensions.LabelAccount])
		return all[id]
	}
	for _, c := range containers.Items {
		o := of(c.Labels)
		switch name := nameOf(c); {
		case o == nil:
		case name == string(o.id)+nameKeeper, name == nameRoom:
			o.keepers = append(o.keepers, c)
		case ours(o.id, name):
			o.containers = append(o.containers, c)
		case strings.HasPrefix(name, "sbx-"):
			o.strange = fmt.Sprintf("the container %s carries the label of %s and the name of another sandbox", extensions.Clean(name, 80), o.id)
		}
	}
	for _, n := range networks.Items {
		if o := of(n.Labels); o != nil && ours(o.id, n.Name) {
			o.networks = append(o.networks, n)
		}
	}
	return all, nil
}

// look finds the objects of one sandbox.
func (b *Backend) look(ctx context.Context, id extensions.ID) (objects, error) {
	all, err := b.find(ctx, havingID(id))
	if err != nil || all[id] == nil {
		return objects{id: id}, err
	}
	return *all[id], nil
}

// lookEverywhere finds what exists of one sandbox, complete or not.
func (b *Backend) lookEverywhere(ctx context.Context, id extensions.ID) (o objects, err error) {
	var k kept
	both, inner := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		o, err = b.look(inner, id)
		return err
	})
	both.Go(func() (err error) {
		k, err = b.kept(inner, string(id))
		return err
	})
	err = both.Wait()
	o.kept = k
	return o, err
}

// ended is when and how a container ended.
type ended struct {
	at   time.Time
	code int
	why  string
	idle bool // by our loop, because nobody used it: a program may end with the same code
}

func (b *Backend) ended(ctx context.Context, id string) (ended, error) {
	r, err := b.engine.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) || err == nil && r.Container.State == nil {
		return ended{}, extensions.Errorf(extensions.KindUnavailable, "one of its containers has just changed").WithRemedy("look again")
	}
	if err != nil {
		return ended{}, asked(err)
	}
	s := r.Container.State
	e := ended{code: s.ExitCode, why: fmt.Sprintf("ended with exit code %d", s.ExitCode)}
	e.at, _ = time.Parse(time.RFC3339Nano, s.FinishedAt)
	e.idle = e.code == idleCode && b.ownFile(ctx, id, "ending") != ""
	if s.OOMKilled {
		e.why = "ran out of memory"
	}
	if s.Error != "" {
		e.why += ": " + extensions.Clean(s.Error, 200)
	}
	return e, nil
}

// remove removes all of a sandbox's objects, and returns when its containers were gone. What somebody else just removed
// is success.
func (b *Backend) remove(ctx context.Context, o objects) (stopped time.Time, err error) {
	if o.none() {
		return stopped, nil
	}
	if of := o.kept.source(); of != "" {
		if err := b.thaw(ctx, of, string(o.id)); err != nil {
			return stopped, err
		}
	}
	_, whole := o.standing()
	if !whole && !o.kept.none() {
		if err := b.revoke(ctx, o); err != nil {
			return stopped, err
		}
		left, err := b.lookEverywhere(ctx, o.id)
		if err != nil {
			return stopped, err
		}
		o = left
	}
	if err := b.removeContainers(ctx, o); err != nil {
		return stopped, err
	}
	stopped = time.Now().UTC()
	b.step("stopped")
	if err := b.removeNetworks(ctx, o.networks); err != nil {
		return stopped, err
	}
	if o.wired() && !whole { // what was being made on it just then
		left, err := b.look(ctx, o.id)
		if err == nil {
			err = b.removeNetworks(ctx, left.networks)
		}
		if err != nil {
			return stopped, err
		}
	}
	return stopped, b.dropCopy(ctx, o.kept, nil)
}

func (b *Backend) removeContainers(ctx context.Context, o objects) error {
	var all errgroup.Group
	for _, c := range o.all() {
		all.Go(func() error {
			err := b.engine.discard(ctx, c.ID)
			switch {
			case errdefs.IsNotFound(err):
				return nil
			case errdefs.IsConflict(err): // it is being removed already
				return b.removed(ctx, c.ID)
			}
			return err
		})
	}
	return all.Wait()
}

// removed waits until a container is gone.
func (b *Backend) removed(ctx context.Context, id string) error {
	r := b.engine.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	select {
	case <-r.Result:
		return nil
	case err := <-r.Error:
		if errdefs.IsNotFound(err) {
			return nil
		}
		return err
	}
}

// sorted orders observations by id.
func sorted(list []extensions.Observation) []extensions.Observation {
	slices.SortFunc(list, func(a, b extensions.Observation) int { return cmp.Compare(a.ID, b.ID) })
	return list
}
