package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type (
	kept     = extensions.Snapshot
	keptSpec = extensions.SnapshotSpec
	keptAt   = extensions.SnapshotHandle
)

var cancelFree = context.Background()

func known(b *broken, s *extensions.SnapshotRef) bool {
	if s == nil {
		return false
	}
	_, err := b.wholeBackend.StatSnapshot(cancelFree, s.Handle)
	return err == nil
}

// remember notes the id of each snapshot made.
func remember(b *broken, c ctx, h handle, s keptSpec) (kept, error) {
	b.w.mu.Lock()
	b.w.seen[s.ID] = true
	b.w.mu.Unlock()
	return b.wholeBackend.Snapshot(c, h, s)
}

func remembered(b *broken, id string) bool {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.w.seen[id]
}

func one(b *broken) spec {
	id, _ := extensions.NewID(nil)
	return spec{ID: id, Account: b.cfg.Account, Generation: 1, Deadline: time.Now().Add(time.Hour)}
}

// preparedOnly are the IDs that one mutant takes for made when they are only prepared.
var preparedOnly sync.Map

// keepingSecrets gives what is restored the secrets of what was kept.
func keepingSecrets(as extensions.SecretDelivery) func(*broken, ctx, spec) (handle, seen, error) {
	return provisionWith(func(b *broken, s *spec) {
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		switch {
		case s.Delivery() != as:
		case s.FromSnapshot != nil:
			s.Secrets = b.w.secrets
		default:
			maps.Copy(b.w.secrets, s.Secrets)
		}
	})
}

var powerMutants = map[string]mutant{
	"ports/dial": {dial: func(*broken, ctx, handle, string, int) (net.Conn, error) {
		here, there := net.Pipe()
		_ = there.Close()
		return here, nil
	}, also: []string{"ports/gone-is-not-found", "ports/outlives-its-call"}},
	"ports/outlives-its-call": {dial: func(b *broken, c ctx, h handle, s string, p int) (net.Conn, error) {
		conn, err := b.wholeBackend.Dial(c, h, s, p)
		if err == nil {
			context.AfterFunc(c, func() { _ = conn.Close() })
		}
		return conn, err
	}},
	"ports/gone-is-not-found": {dial: func(b *broken, c ctx, h handle, s string, p int) (net.Conn, error) {
		conn, err := b.wholeBackend.Dial(c, h, s, p)
		return conn, turn(err, extensions.KindNotFound, extensions.KindUnreachable)
	}},

	"snapshot/describes-itself": {snapshot: func(b *broken, c ctx, h handle, s keptSpec) (kept, error) {
		k, err := b.wholeBackend.Snapshot(c, h, s)
		k.Kind = "picture"
		return k, err
	}, also: []string{"snapshot/takes-the-kinds-it-declares"}},
	"snapshot/takes-the-kinds-it-declares": {snapshot: func(b *broken, c ctx, h handle, s keptSpec) (kept, error) {
		s.Kind = "" // whatever is asked for
		return b.wholeBackend.Snapshot(c, h, s)
	}},
	"snapshot/stops-its-source-as-declared": {snapshot: func(b *broken, c ctx, h handle, s keptSpec) (kept, error) {
		k, err := b.wholeBackend.Snapshot(c, h, s)
		_, _ = b.wholeBackend.Pause(c, h)
		return k, err
	}, also: []string{"snapshot/restore"}},
	"snapshot/ends-its-source-as-declared": {describe: func(d *extensions.Descriptor) { d.Snapshots.EndsSource = true }}, // the stub's runs on
	"snapshot/leaves-an-ended-source-to-its-teardown": {describe: func(d *extensions.Descriptor) { d.Snapshots.EndsSource = true },
		snapshot: func(b *broken, c ctx, h handle, s keptSpec) (kept, error) {
			k, err := b.wholeBackend.Snapshot(c, h, s)
			if err == nil {
				_, err = b.wholeBackend.Teardown(c, h)
			}
			return k, err
		}, also: []string{"snapshot/ends-its-source-as-declared"}},
	"snapshot/expires-as-declared": {describe: func(d *extensions.Descriptor) { d.Snapshots.Expires = time.Hour }},
	"snapshot/idempotent-by-id": {snapshot: func(b *broken, c ctx, h handle, s keptSpec) (kept, error) {
		b.w.mu.Lock()
		twice := b.w.seen[s.ID]
		b.w.seen[s.ID] = true
		b.w.mu.Unlock()
		if twice {
			s.ID, _ = extensions.NewSnapshotID(nil)
		}
		return b.wholeBackend.Snapshot(c, h, s)
	}},
	"snapshot/find": {findSnapshot: func(b *broken, c ctx, id string) (kept, error) {
		k, err := b.wholeBackend.FindSnapshot(c, id)
		k.SandboxID = ""
		return k, err
	}},
	"snapshot/find-unknown": {findSnapshot: func(b *broken, c ctx, id string) (kept, error) {
		k, err := b.wholeBackend.FindSnapshot(c, id)
		return k, turn(err, extensions.KindNotFound, extensions.KindIndeterminate)
	}},
	"snapshot/works-in-another-process": {
		snapshot: func(b *broken, c ctx, h handle, s keptSpec) (kept, error) {
			b.w.mu.Lock()
			b.mine[extensions.ID(s.ID)] = true
			b.w.mu.Unlock()
			return b.wholeBackend.Snapshot(c, h, s)
		},
		statSnapshot: func(b *broken, c ctx, h keptAt) (kept, error) {
			b.w.mu.Lock()
			defer b.w.mu.Unlock()
			if !b.mine[extensions.ID(h.ID)] {
				return kept{}, extensions.Errorf(extensions.KindNotFound, "not mine")
			}
			return b.wholeBackend.StatSnapshot(c, h)
		}},
	"snapshot/outlives-its-sandbox": {
		snapshot: func(b *broken, c ctx, h handle, s keptSpec) (kept, error) {
			k, err := b.wholeBackend.Snapshot(c, h, s)
			b.w.mu.Lock()
			defer b.w.mu.Unlock()
			b.w.snapshots[string(h.ID)] = append(b.w.snapshots[string(h.ID)], k.Handle)
			return k, err
		},
		teardown: teardownThen(func(b *broken, h handle, _ *cleanup, _ *error) {
			for _, s := range b.w.snapshots[string(h.ID)] {
				_ = b.wholeBackend.DeleteSnapshot(cancelFree, s)
			}
		})},
	"snapshot/restore": {provision: provisionWith(func(b *broken, s *spec) {
		if known(b, s.FromSnapshot) {
			s.FromSnapshot = nil
		}
	})},
	"snapshot/restore-of-missing-refused": {provision: provisionWith(func(b *broken, s *spec) {
		if !known(b, s.FromSnapshot) {
			s.FromSnapshot = nil
		}
	})},
	"snapshot/delete": {deleteSnapshot: func(*broken, ctx, keptAt) error { return nil },
		also: []string{"snapshot/delete-foreign-refused", "snapshot/delete-relabelled-refused", "snapshot/restore-of-missing-refused"}},
	"snapshot/delete-gone-is-success": {deleteSnapshot: func(b *broken, c ctx, h keptAt) error {
		if _, err := b.wholeBackend.StatSnapshot(c, h); err != nil {
			return err
		}
		return b.wholeBackend.DeleteSnapshot(c, h)
	}},
	"snapshot/delete-foreign-refused": {snapshot: remember, deleteSnapshot: func(b *broken, c ctx, h keptAt) error {
		if remembered(b, h.ID) {
			return b.wholeBackend.DeleteSnapshot(c, h)
		}
		return swallow(b.wholeBackend.DeleteSnapshot(c, h), extensions.KindConflict)
	}},
	"snapshot/delete-relabelled-refused": {snapshot: remember, deleteSnapshot: func(b *broken, c ctx, h keptAt) error {
		if !remembered(b, h.ID) {
			return b.wholeBackend.DeleteSnapshot(c, h)
		}
		return swallow(b.wholeBackend.DeleteSnapshot(c, h), extensions.KindConflict)
	}},
	"snapshot/of-gone-is-not-found": {snapshot: func(b *broken, c ctx, h handle, s keptSpec) (kept, error) {
		k, err := b.wholeBackend.Snapshot(c, h, s)
		return k, turn(err, extensions.KindNotFound, extensions.KindUnreachable)
	}},
	"snapshot/keeps-no-secret":      {provision: keepingSecrets(extensions.SecretsEnv)},
	"snapshot/keeps-no-secret-file": {provision: keepingSecrets(extensions.SecretsFile)},

	"extend/moves-the-deadline": {extend: func(b *broken, c ctx, h handle, to time.Time) error {
		return b.wholeBackend.Extend(c, h, to.Add(-5*time.Second))
	}, also: []string{"extend/right-after-provision"}},
	"extend/earlier-is-refused-where-only-later-is-declared": {describe: func(d *extensions.Descriptor) {
		d.Capabilities.ExtendTTL = extensions.ExtendLater // the stub moves it anywhere
	}},
	"extend/right-after-provision": {
		waitReady: func(b *broken, c ctx, s spec, h handle) (seen, error) {
			b.w.mu.Lock()
			b.w.seen[string(h.ID)] = true
			b.w.mu.Unlock()
			return b.wholeBackend.WaitReady(c, s, h)
		},
		extend: func(b *broken, c ctx, h handle, to time.Time) error {
			if !remembered(b, string(h.ID)) {
				return nil
			}
			return b.wholeBackend.Extend(c, h, to)
		}, also: []string{"extend/moves-the-deadline", "extend/later-keeps-it", "extend/earlier-ends-it", "extend/ended-is-not-found"}},
	"extend/later-keeps-it": {extend: func(b *broken, c ctx, h handle, to time.Time) error {
		all, err := b.wholeBackend.Status(c, []handle{h})
		if err == nil && all[0].Phase == extensions.PhaseReady && to.After(all[0].Deadline) && time.Until(to) < 10*time.Minute {
			return nil
		}
		return b.wholeBackend.Extend(c, h, to)
	}},
	"extend/earlier-ends-it": {extend: func(b *broken, c ctx, h handle, to time.Time) error {
		all, err := b.wholeBackend.Status(c, []handle{h})
		if err == nil && to.Before(all[0].Deadline) && time.Until(to) < 10*time.Minute {
			return nil
		}
		return b.wholeBackend.Extend(c, h, to)
	}},
	"extend/ended-is-not-found": {extend: func(b *broken, c ctx, h handle, to time.Time) error {
		return swallow(b.wholeBackend.Extend(c, h, to), extensions.KindNotFound)
	}},

	"usage/grows": {usage: func(b *broken, c ctx, h handle) (extensions.Usage, error) {
		u, err := b.wholeBackend.Usage(c, h)
		if u.EndedAt.IsZero() {
			u.Running = time.Second
		}
		return u, err
	}},
	"usage/ends-with-the-sandbox": {usage: func(b *broken, c ctx, h handle) (extensions.Usage, error) {
		u, err := b.wholeBackend.Usage(c, h)
		u.EndedAt = time.Time{}
		return u, err
	}},
	"usage/teardown-returns-it": {teardown: teardownThen(func(_ *broken, _ handle, r *cleanup, _ *error) { r.Usage = nil })},

	"capacity/counts": {capacity: func(b *broken, c ctx) (extensions.Capacity, error) {
		room, err := b.wholeBackend.Capacity(c)
		room.Used = new(int64)
		return room, err
	}},
	"capacity/is-dated": {capacity: func(b *broken, c ctx) (extensions.Capacity, error) {
		room, err := b.wholeBackend.Capacity(c)
		room.ObservedAt = time.Time{}
		return room, err
	}},
	"capacity/not-above-declared": {capacity: func(b *broken, c ctx) (extensions.Capacity, error) {
		room, err := b.wholeBackend.Capacity(c)
		*room.Max = 1 << 40
		return room, err
	}},

	"probe/facts": {also: []string{"probe/narrows-to-the-machine"}, probe: func(b *broken, c ctx) (extensions.Facts, []extensions.Observation, error) {
		f, all, err := b.wholeBackend.Probe(c)
		f.Machine.Arch = "z80"
		return f, all, err
	}},
	"probe/narrows-to-the-machine": {probe: func(b *broken, c ctx) (extensions.Facts, []extensions.Observation, error) {
		f, all, err := b.wholeBackend.Probe(c)
		f.Narrowing.Arch = nil // the declaration says any
		return f, all, err
	}},
	"probe/isolation-not-above-declared": {probe: func(b *broken, c ctx) (extensions.Facts, []extensions.Observation, error) {
		f, all, err := b.wholeBackend.Probe(c)
		f.Machine.Isolation = append(slices.Clone(f.Machine.Isolation), extensions.IsolationVM)
		return f, all, err
	}},
	"probe/only-narrows": {probe: func(b *broken, c ctx) (extensions.Facts, []extensions.Observation, error) {
		f, all, err := b.wholeBackend.Probe(c)
		forever := 48 * time.Hour // a day is declared
		f.Narrowing.MaxTTL = &forever
		return f, all, err
	}},
	"probe/can-be-kept": {probe: func(b *broken, c ctx) (extensions.Facts, []extensions.Observation, error) {
		f, all, err := b.wholeBackend.Probe(c)
		f.Notes = slices.Repeat([]string{"gpu: it has none"}, 1<<10)
		return f, all, err
	}},
	"probe/tells-what-status-tells": {probe: func(b *broken, c ctx) (extensions.Facts, []extensions.Observation, error) {
		f, all, err := b.wholeBackend.Probe(c)
		return f, all[:0], err
	}},

	"estimate/follows-the-duration": {estimate: func(b *broken, c ctx, s spec, _ time.Duration) (extensions.Usage, error) {
		return b.wholeBackend.Estimate(c, s, time.Hour)
	}},
	"estimate/makes-nothing": {estimate: func(b *broken, c ctx, s spec, d time.Duration) (extensions.Usage, error) {
		if _, _, err := b.wholeBackend.Provision(c, s); err != nil {
			return extensions.Usage{}, err
		}
		return b.wholeBackend.Estimate(c, s, d)
	}},

	"prepare-image/digest-is-stable": {also: []string{"prepare-image/digest-is-of-the-images"}, prepareImage: func(b *broken, c ctx, s spec) (string, error) {
		digest, err := b.wholeBackend.PrepareImage(c, s)
		return digest + strconv.FormatInt(time.Now().UnixNano(), 16), err
	}},
	"prepare-image/digest-is-of-the-images": {prepareImage: func(_ *broken, c ctx, s spec) (string, error) {
		sum := sha256.Sum256([]byte(s.Name))
		return "sha256:" + hex.EncodeToString(sum[:]), c.Err()
	}},
	"prepare-image/create-follows": {
		prepareImage: func(b *broken, c ctx, s spec) (string, error) {
			preparedOnly.Store(s.ID, true)
			return b.wholeBackend.PrepareImage(c, s)
		},
		provision: func(b *broken, c ctx, s spec) (handle, seen, error) {
			if _, prepared := preparedOnly.LoadAndDelete(s.ID); prepared {
				return handle{}, seen{}, extensions.Errorf(extensions.KindConflict, "it is there already")
			}
			return b.wholeBackend.Provision(c, s)
		}},
	"prepare-image/canceled-starts-nothing": {prepareImage: func(b *broken, c ctx, s spec) (string, error) {
		return b.wholeBackend.PrepareImage(context.WithoutCancel(c), s)
	}},
	"prepare-image/makes-no-sandbox": {prepareImage: func(b *broken, c ctx, s spec) (string, error) {
		if _, _, err := b.wholeBackend.Provision(c, one(b)); err != nil {
			return "", err
		}
		return b.wholeBackend.PrepareImage(c, s)
	}},

	"set-generation/raises": {setGeneration: func(b *broken, c ctx, h handle, g int64) error {
		return b.wholeBackend.SetGeneration(c, h, max(g-1, 2))
	}},
	"set-generation/never-lowers": {setGeneration: func(b *broken, c ctx, h handle, g int64) error {
		return swallow(b.wholeBackend.SetGeneration(c, h, g), extensions.KindConflict)
	}},
	"set-generation/gone-is-not-found": {setGeneration: func(b *broken, c ctx, h handle, g int64) error {
		return swallow(b.wholeBackend.SetGeneration(c, h, g), extensions.KindNotFound)
	}},
}
