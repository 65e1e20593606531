package docker

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Extend implements extensions.Extender: a lease in each container, and the name of the agent's. The name never
// promises more than the leases give: it changes first if the deadline comes nearer, else last.
func (b *Backend) Extend(ctx context.Context, h extensions.Handle, deadline time.Time) error {
	return failed("extend", h.ID, sent(b.extend(ctx, h, deadline)))
}

func (b *Backend) extend(ctx context.Context, h extensions.Handle, deadline time.Time) error {
	if deadline.IsZero() {
		return extensions.Errorf(extensions.KindInvalid, "a sandbox in Docker needs a deadline")
	}
	found, at, err := b.live(ctx, h)
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return b.leases(ctx, found, deadline) },
		func() error { return b.restand(ctx, h.ID, func(s *standing) { s.deadline = deadline }) },
	}
	if deadline.Before(at.deadline) {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) leases(ctx context.Context, found objects, deadline time.Time) error {
	for _, c := range found.containers {
		if err := b.lease(ctx, c, deadline); err != nil {
			return err
		}
	}
	return nil
}

// lease tells the first process of a container its new deadline.
func (b *Backend) lease(ctx context.Context, c container.Summary, deadline time.Time) error {
	err := b.writeLease(ctx, c.ID, deadline)
	if err == nil && c.State == container.StateRunning {
		err = b.wake(ctx, c)
	}
	return err
}

// writeLease writes the deadline into a container, and makes empty files and sets the modes of folders there.
func (b *Backend) writeLease(ctx context.Context, id string, deadline time.Time, others ...tar.Header) error {
	dir := strings.TrimPrefix(ownDir, "/")
	all := slices.Concat([]tar.Header{{Name: dir + "/", Mode: 0o755}}, others, []tar.Header{{Name: dir + "/lease", Mode: 0o644}})
	if err := b.put(ctx, id, unixSeconds(deadline)+"\n", all...); err != nil {
		return fmt.Errorf("writing the deadline into %s of the container: %w", ownDir, err)
	}
	return nil
}

// put makes files and folders in a container; the last one is a file with a text.
func (b *Backend) put(ctx context.Context, id, text string, all ...tar.Header) error {
	return b.engine.copyIn(ctx, id, "/", func(w io.Writer) error {
		t := tar.NewWriter(w)
		for i, h := range all {
			if h.Typeflag = tar.TypeReg; strings.HasSuffix(h.Name, "/") {
				h.Typeflag = tar.TypeDir
			}
			if i == len(all)-1 {
				h.Size = int64(len(text))
			}
			if err := t.WriteHeader(&h); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(t, text); err != nil {
			return err
		}
		return t.Close()
	})
}

// wake makes our loop in a container look at its lease.
func (b *Backend) wake(ctx context.Context, c container.Summary) error {
	if c.Labels[labelShared] != "" {
		return nil
	}
	_, err := b.engine.ContainerKill(ctx, c.ID, client.ContainerKillOptions{Signal: "USR1"})
	if errdefs.IsConflict(err) || errdefs.IsNotFound(err) { // it has just ended
		return nil
	}
	return err
}

// restand changes the standing of a complete sandbox, and only the one that it read: the engine renames nothing
// whose name has changed meanwhile.
func (b *Backend) restand(ctx context.Context, id extensions.ID, change func(*standing)) error {
	for {
		found, err := b.look(ctx, id)
		if err != nil {
			return err
		}
		at, whole := found.standing()
		if !whole {
			return extensions.Errorf(extensions.KindNotFound, "%s is not complete any more", id)
		}
		to := at
		if change(&to); to == at {
			return nil
		}
		if err = b.engine.rename(ctx, nameOf(found.agent()), to.name(id)); !errdefs.IsNotFound(err) {
			return err
		}
	}
}

func (e *engine) rename(ctx context.Context, from, to string) error {
	_, err := e.ContainerRename(ctx, from, client.ContainerRenameOptions{NewName: to})
	return err
}

// live finds a complete sandbox that has not ended.
func (b *Backend) live(ctx context.Context, h extensions.Handle) (objects, standing, error) {
	if err := ctx.Err(); err != nil {
		return objects{}, standing{}, err
	}
	if err := b.resolve(ctx, h); err != nil {
		return objects{}, standing{}, err
	}
	found, err := b.look(ctx, h.ID)
	if err != nil {
		return found, standing{}, err
	}
	at, whole := found.standing()
	switch state := found.agent().State; {
	case found.none():
		return found, at, extensions.Errorf(extensions.KindNotFound, "%s does not exist", h.ID)
	case !whole:
		return found, at, extensions.Errorf(extensions.KindNotFound, "%s is not complete", h.ID)
	case state != container.StateRunning && state != container.StatePaused:
		return found, at, extensions.Errorf(extensions.KindNotFound, "%s has ended: its container is %s", h.ID, state)
	}
	return found, at, nil
}

// SetGeneration implements extensions.GenerationSetter.
func (b *Backend) SetGeneration(ctx context.Context, h extensions.Handle, generation int64) error {
	return failed("set generation", h.ID, sent(b.setGeneration(ctx, h, generation)))
}

func (b *Backend) setGeneration(ctx context.Context, h extensions.Handle, generation int64) error {
	_, at, err := b.live(ctx, h)
	if err != nil {
		return err
	}
	if generation <= at.generation {
		return extensions.Errorf(extensions.KindConflict, "%s already has the generation %d, not below %d", h.ID, at.generation, generation)
	}
	return b.restand(ctx, h.ID, func(s *standing) { s.generation = max(s.generation, generation) })
}
