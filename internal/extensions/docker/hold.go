package docker

import (
	"context"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// holdPatience is how long one copy of a sandbox, or a command in it, waits for another copy to be made.
const holdPatience = 5 * time.Minute

func held(id extensions.ID) *extensions.Error {
	err := extensions.Errorf(extensions.KindUnavailable, "it is being copied, so nothing runs in it")
	err.ID = id
	return err.WithRemedy("try again in a moment; if a run was killed during the copy, `sandboxer sweep` ends the copy")
}

// hold keeps a sandbox as it is for the copy with a key: frozen, if it runs and live is not set. The name of its
// agent says so, so that whoever ends the copy after our death thaws it. One copy is made at a time.
func (b *Backend) hold(ctx context.Context, h extensions.Handle, key string, live bool) (found objects, err error) {
	err = ready.Wait{Timeout: holdPatience}.Until(ctx, func(ctx context.Context) (string, error) {
		var at standing
		found, at, err = b.live(ctx, h)
		if err != nil || at.hold.key == key {
			return "", err
		}
		if at.hold.key != "" {
			return held(h.ID).Error(), nil
		}
		to := at
		to.hold = hold{key, !live && found.agent().State == container.StateRunning}
		if to.hold.thaw {
			if err := b.engine.canFreeze(ctx); err != nil {
				return "", err
			}
		}
		err = uncut(ctx, cleanupTime, func(ctx context.Context) error { return b.engine.rename(ctx, nameOf(found.agent()), to.name(h.ID)) })
		if errdefs.IsNotFound(err) {
			return "its name has changed", nil
		}
		return "", err
	})
	if err != nil {
		return found, err
	}
	b.step("held")
	found, at, err := b.live(ctx, h) // it may have ended meanwhile
	if err != nil {
		return found, err
	}
	if at.hold.thaw {
		for _, c := range found.containers {
			if c.State != container.StateRunning {
				continue
			}
			err := uncut(ctx, cleanupTime, func(ctx context.Context) error { return b.engine.pause(ctx, c.ID) })
			if err != nil && !errdefs.IsConflict(err) { // it has just ended
				return found, err
			}
		}
	}
	return found, nil
}

// uncut makes a call that an engine goes on with, whoever is gone, and waits for its answer for as long as limit even if
// ctx is done. A source is frozen meanwhile, so an engine that never answers is not waited for longer.
func uncut(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return call(ctx)
}

// thaw lets a sandbox run on that was held for the copy with a key, if it still is.
func (b *Backend) thaw(ctx context.Context, id extensions.ID, key string) error {
	found, err := b.look(ctx, id)
	if err != nil {
		return err
	}
	at, whole := found.standing()
	if !whole || at.hold.key != key {
		return nil
	}
	if at.hold.thaw {
		if err := b.unpauseAll(ctx, found); err != nil {
			return err
		}
	}
	err = b.restand(ctx, id, func(s *standing) {
		if s.hold.key == key {
			s.hold = hold{}
		}
	})
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return err
}
