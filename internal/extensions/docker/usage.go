package docker

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// used counts the sandboxes that the labels select and that live or are being made, of all accounts, except one.
func (b *Backend) used(ctx context.Context, but extensions.ID, labels ...string) (int64, error) {
	r, err := b.engine.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: having(append(labels, labelService+"="+extensions.AgentService)...).Add("status", "created", "running", "paused", "restarting")})
	if err != nil {
		return 0, err
	}
	n := int64(0)
	for _, c := range r.Items {
		id := extensions.ID(c.Labels[extensions.LabelID])
		end, err := time.Parse(time.RFC3339, c.Labels[extensions.LabelInitialExpires])
		died := c.State == container.StateCreated && err == nil && time.Now().After(end)
		if id != but && ours(id, nameOf(c)) && !died {
			n++
		}
	}
	return n, nil
}

// roomTime is how long one create may count and make its container.
const roomTime = 20 * time.Second

// inRoom makes what counts as a sandbox if there is room for it. Creates of other processes look at the same time, and an
// engine has one thing that only one of them gets: a container's name. It has this sandbox's labels, so it goes with it.
func (m *making) inRoom(ctx context.Context, do func() error) error {
	m.step("room")
	if m.settings.max == 0 && m.settings.hostMax == 0 {
		return do()
	}
	o := idle(nameRoom, m.imageRef(m.agent), objects{id: m.plan.spec.ID, account: m.plan.spec.Account}.placeholder())
	var made, other string
	var since time.Time
	err := ready.Wait{Interval: 200 * time.Millisecond, Timeout: cleanupTime}.Soon(ctx, "other creates are counting sandboxes here",
		func(ctx context.Context) (bool, error) {
			r, err := m.engine.ContainerCreate(ctx, o)
			if !errdefs.IsConflict(err) {
				made = r.ID
				return true, err
			}
			switch held, err := m.engine.ContainerInspect(ctx, nameRoom, client.ContainerInspectOptions{}); {
			case errdefs.IsNotFound(err):
				return false, nil
			case err != nil:
				return false, err
			case held.Container.ID != other:
				other, since = held.Container.ID, time.Now()
			case time.Since(since) > roomTime: // who made it has died
				_ = m.leaveRoom(ctx, other)
			}
			return false, nil
		})
	if err != nil {
		return err
	}
	defer func() { _ = m.leaveRoom(ctx, made) }() // what stays is taken for that of a dead create, and goes with the sandbox
	if err := m.room(ctx, m.plan.spec.ID); err != nil {
		return err
	}
	return do()
}

func (m *making) leaveRoom(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	return m.engine.discard(ctx, id)
}

// room refuses a sandbox above the limit of the binding, or of the host's owner.
func (b *Backend) room(ctx context.Context, id extensions.ID) error {
	for _, l := range []struct {
		most   int64
		labels []string
		raise  string
	}{
		{b.settings.max, []string{labelBinding + "=" + b.settings.binding}, "config.max_sandboxes"},
		{b.settings.hostMax, nil, "the host's capacity"},
	} {
		if l.most == 0 {
			continue
		}
		n, err := b.used(ctx, id, l.labels...)
		if err != nil {
			return err
		}
		if n >= l.most {
			return extensions.Errorf(extensions.KindExhausted, "%d sandboxes live here or are being made, and the limit is %d", n, l.most).
				WithRemedy("destroy one, or raise %s", l.raise)
		}
	}
	return nil
}

// Capacity implements extensions.CapacityReader.
func (b *Backend) Capacity(ctx context.Context) (extensions.Capacity, error) {
	c := extensions.Capacity{ObservedAt: time.Now().UTC(), SharedByOthers: true}
	var labels []string
	most := b.settings.hostMax
	if b.settings.max > 0 && (most == 0 || b.settings.max < most) {
		most, labels = b.settings.max, []string{labelBinding + "=" + b.settings.binding}
	}
	n, err := b.used(ctx, "", labels...)
	if err != nil {
		return extensions.Capacity{}, failed("capacity", "", err)
	}
	if c.Used = &n; most > 0 {
		c.Max = &most
	}
	return c, nil
}

// Usage implements extensions.UsageReader: the wall clock, and the CPU time and traffic that the engine counts
// while the containers run.
func (b *Backend) Usage(ctx context.Context, h extensions.Handle) (extensions.Usage, error) {
	u, err := b.usage(ctx, h)
	return u, failed("usage", h.ID, err)
}

func (b *Backend) usage(ctx context.Context, h extensions.Handle) (extensions.Usage, error) {
	if err := b.resolve(ctx, h); err != nil {
		return extensions.Usage{}, err
	}
	found, err := b.look(ctx, h.ID)
	if err != nil {
		return extensions.Usage{}, err
	}
	if found.none() {
		return extensions.Usage{}, extensions.Errorf(extensions.KindNotFound, "%s does not exist", h.ID)
	}
	return b.measured(ctx, h, found), nil
}

// measured is the usage of what exists.
func (b *Backend) measured(ctx context.Context, h extensions.Handle, found objects) extensions.Usage {
	o := b.observe(ctx, h, found)
	u := extensions.Usage{StartedAt: o.StartedAt, EndedAt: o.EndedAt}
	until := o.EndedAt
	if until.IsZero() {
		until = time.Now()
	}
	if !u.StartedAt.IsZero() {
		u.Running = max(until.Sub(u.StartedAt), 0)
	}
	info, err := b.engine.about(ctx)
	if err != nil {
		return u
	}
	each := make([]counts, len(found.containers))
	var all errgroup.Group
	for i, c := range found.containers {
		all.Go(func() (err error) {
			each[i], err = b.counts(ctx, c)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return u // the sum would lack a part
	}
	var cpu, out int64
	for _, c := range each {
		cpu += c.cpu.Milliseconds()
		if !found.wired() { // nothing leaves
			out += int64(c.sent)
		}
	}
	if u.EgressBytes = &out; hasCgroups(info) {
		u.CPUMillis = &cpu
	}
	return u
}

// counts asks the kernel, if it is this machine's, else the engine.
func (b *Backend) counts(ctx context.Context, c container.Summary) (counts, error) {
	if c.State != container.StateRunning && c.State != container.StatePaused {
		return counts{}, errors.New("it does not run, so it is not counted any more")
	}
	if b.engine.over == nil {
		r, err := b.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
		if err != nil {
			return counts{}, err
		}
		// A runtime with a kernel of its own counts for itself.
		if x := r.Container; x.State != nil && x.HostConfig != nil && levelOf(x.HostConfig.Runtime) == extensions.IsolationContainer {
			if n, ok := counted(os.DirFS("/"), x.State.Pid, c.ID); ok {
				return n, nil
			}
		}
	}
	return b.told(ctx, c.ID)
}

// told is what the engine counts.
func (b *Backend) told(ctx context.Context, id string) (n counts, err error) {
	r, err := b.engine.ContainerStats(ctx, id, client.ContainerStatsOptions{})
	if err != nil {
		return n, err
	}
	defer func() { _ = r.Body.Close() }()
	var s container.StatsResponse
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		return n, err
	}
	n.cpu = time.Duration(s.CPUStats.CPUUsage.TotalUsage)
	for _, device := range s.Networks {
		n.sent += device.TxBytes
	}
	return n, nil
}
