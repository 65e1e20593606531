package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// cleanupTime bounds the cleanup after a failure, and a short call that nothing is to break off, whatever happened to the
// caller's context.
const cleanupTime = 60 * time.Second

// Provision implements extensions.Backend. The agent's container gets its final name last: until then, the next
// create and Find know that it is not complete.
func (b *Backend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	h, o, err := b.provision(ctx, spec)
	return h, o, failed("provision", spec.ID, err)
}

func (b *Backend) provision(ctx context.Context, spec extensions.Spec) (none extensions.Handle, o extensions.Observation, err error) {
	if err := ctx.Err(); err != nil {
		return none, o, extensions.Errorf(extensions.KindUnavailable, "nothing was started: %w", err)
	}
	if err := spec.CheckIdentity(time.Now()); err != nil {
		return none, o, err
	}
	p, err := newPlan(ctx, b.settings, spec)
	if err != nil {
		return none, o, err
	}
	h, err := b.handle(ctx, spec.ID)
	if err != nil {
		if b.engine.over == nil {
			err = notHere(err)
		}
		return none, o, err
	}
	found, err := b.lookEverywhere(ctx, spec.ID)
	if err != nil {
		return h, o, err
	}
	if done, err := adopt(found, spec); err != nil || done {
		return h, b.observe(ctx, h, found), err
	}
	if _, err := b.remove(ctx, found); err != nil {
		return h, o, fmt.Errorf("removing the residue of an earlier attempt: %w", err)
	}
	m := &making{Backend: b, plan: p}
	if err = m.prepare(ctx); err != nil {
		return none, o, err
	}
	if err = m.make(ctx); err != nil && m.lostImage(ctx) {
		if err = b.undo(ctx, p); err == nil {
			m.images, err = b.images(ctx, p)
		}
		if err == nil {
			err = m.make(ctx)
		}
	}
	if err == nil {
		o, err = b.observed(ctx, h)
	}
	switch {
	case err == nil:
		if o.Phase == extensions.PhaseReady && p.waits() {
			o.Phase, o.Reachability = extensions.PhaseProvisioning, extensions.Reachability{}
		}
		return h, o, nil
	case extensions.IsKind(sent(err), extensions.KindIndeterminate):
		return h, o, sent(err)
	}
	if undo := b.undo(ctx, p); undo != nil {
		return h, o, errors.Join(err, fmt.Errorf("and its residue could not all be removed: %w", undo))
	}
	return none, o, err
}

// undo removes all of a sandbox, and what was built for it alone, with time of its own.
func (b *Backend) undo(ctx context.Context, p *plan) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	left, err := b.lookEverywhere(ctx, p.spec.ID)
	if err == nil {
		_, err = b.remove(ctx, left)
	}
	if err == nil {
		_, _, err = b.release(ctx, p.builtKeys())
	}
	return err
}

// lostImage reports that an image was removed between the look at it and its use, by the end of another sandbox.
func (m *making) lostImage(ctx context.Context) bool {
	if m.images == nil { // it is made of a copy
		return false
	}
	for _, x := range m.rendered.Builds {
		if _, err := m.engine.ImageInspect(ctx, x.Tag); errdefs.IsNotFound(err) {
			return true
		}
	}
	return false
}

// notHere makes a machine without an engine one that cannot run this extension.
func notHere(err error) error {
	var known *extensions.Error
	if !noEngine(err) || !errors.As(err, &known) || known.Kind != extensions.KindUnreachable {
		return err
	}
	return &extensions.Error{Kind: extensions.KindUnsupported, Remedy: known.Remedy, Err: known.Err}
}

// adopt decides about an existing sandbox: it is the requested one, it belongs to somebody else, or it must give
// way.
func adopt(found objects, spec extensions.Spec) (bool, error) {
	if found.strange != "" {
		return false, extensions.Errorf(extensions.KindConflict, "%s", found.strange)
	}
	if found.account != "" && found.account != spec.Account {
		return false, extensions.Errorf(extensions.KindConflict, "%s belongs to the account %q", spec.ID, extensions.Clean(found.account, 80))
	}
	at, whole := found.standing()
	if whole && at.generation > spec.Generation {
		return false, extensions.Errorf(extensions.KindConflict, "another owner took over %s: its generation is %d, not %d", spec.ID,
			at.generation, spec.Generation)
	}
	agent := found.agent()
	return whole && at.generation == spec.Generation && (agent.State == container.StateRunning || agent.State == container.StatePaused), nil
}

// making is one create.
type making struct {
	*Backend
	*plan
	mapsRoot bool                                         // root inside is an unprivileged user of the host
	runtime  string                                       // "" = the engine's default
	images   map[string]image                             // by reference
	copies   map[string]image                             // by service; they count more
	open     func(context.Context) (io.ReadCloser, error) // the workspace, instead of the spec's; nil = the spec's
	agentID  string

	addresses map[string]netip.Addr // of the containers, by service
}

// prepare finds what the create needs and makes nothing.
func (m *making) prepare(ctx context.Context) error {
	info, err := m.engine.about(ctx)
	if err != nil {
		return err
	}
	m.mapsRoot = mapsRoot(info)
	if m.runtime, err = runtimeFor(info, m.plan.spec.Isolation); err != nil {
		return err
	}
	if err := m.checkIdleAt(info); err != nil {
		return err
	}
	if err := lacksLimits(info, m.plan.spec.Resources); err != nil {
		return err
	}
	if err := m.room(ctx, m.plan.spec.ID); err != nil {
		return err
	}
	if err := m.origin(ctx); err != nil {
		return err
	}
	if m.ownImages() {
		m.images, err = m.Backend.images(ctx, m.plan)
	}
	return err
}

// all are the services, the agent's last.
func (m *making) all() []service { return slices.Concat(m.services, []service{m.agent}) }

// make creates everything. What exists carries the sandbox's labels from its first moment.
func (m *making) make(ctx context.Context) error {
	spec := m.plan.spec
	if err := m.fork(ctx); err != nil {
		return err
	}
	m.step("claims")
	if err := m.claims(ctx); err != nil {
		return err
	}
	if m.networked() {
		m.step("network")
		if err := m.makeNetwork(ctx); err != nil {
			return err
		}
	}
	if m.wired() {
		if err := m.proveDeny(ctx); err != nil {
			return err
		}
	}
	var id string
	var who owner
	err := m.inRoom(ctx, func() (err error) {
		m.step("agent")
		id, who, err = m.create(ctx, m.agent, string(spec.ID)+nameNew, m.looped)
		return err
	})
	if err != nil {
		return err
	}
	m.agentID = id
	m.step("fill")
	if err := m.fill(ctx, id, who); err != nil {
		return err
	}
	if err := m.settle(ctx, m.agent, id); err != nil {
		return err
	}
	m.step("start")
	if err := m.startAgent(ctx, id); err != nil {
		return err
	}
	if m.wired() {
		m.step("keeper")
		if err := m.makeKeeper(ctx); err != nil {
			return err
		}
	}
	for _, s := range m.services {
		m.step("service")
		if err := m.makeService(ctx, s); err != nil {
			return err
		}
	}
	m.step("unclaim")
	if err := m.unclaim(ctx); err != nil {
		return err
	}
	m.step("name")
	final := standing{generation: spec.Generation, deadline: spec.Deadline}.name(spec.ID)
	err = m.engine.rename(ctx, id, final)
	m.step("named")
	return err
}

// makeService creates and starts one service. An image without a shell cannot run our loop: its processes are in
// the agent's namespace instead, and end with it.
func (m *making) makeService(ctx context.Context, s service) error {
	name := string(m.plan.spec.ID) + nameService + s.Name
	id, _, err := m.create(ctx, s, name, m.looped)
	if err == nil && m.engine.lacks(ctx, id, "/bin/sh") {
		if err = m.engine.discard(ctx, id); err == nil {
			id, _, err = m.create(ctx, s, name, m.shared)
		}
	}
	if err == nil {
		err = m.settle(ctx, s, id)
	}
	if err == nil {
		err = m.start(ctx, id, s.Image)
	}
	if err != nil {
		return fmt.Errorf("the service %q: %w", s.Name, err)
	}
	return nil
}

func (m *making) start(ctx context.Context, id, image string) error {
	_, err := m.engine.ContainerStart(ctx, id, client.ContainerStartOptions{})
	if err == nil || lost(err) || ctx.Err() != nil {
		return err
	}
	if m.engine.lacks(ctx, id, "/bin/sh") {
		return extensions.Errorf(extensions.KindUnsupported, "the image %s has no /bin/sh, which sandboxer needs to keep and end the sandbox",
			extensions.Clean(image, 200)).
			WithRemedy("use an image with a shell, such as debian:12-slim or alpine; images without one can be services")
	}
	if strings.Contains(err.Error(), "the macvlan port: operation not supported") {
		return extensions.Errorf(extensions.KindUnsupported, "the engine's kernel has no macvlan, which a closed network needs").
			WithRemedy("load the module where the engine runs: modprobe macvlan")
	}
	return extensions.Errorf(extensions.KindFailed, "the container could not be started: %s", extensions.Clean(err.Error(), maxMessage)).
		WithRemedy("if this comes from the image's user, volumes or files, use another image; otherwise check the engine")
}

func unixSeconds(t time.Time) string { return strconv.FormatInt(t.Add(time.Second-1).Unix(), 10) }
