package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type (
	ctx     = context.Context
	spec    = extensions.Spec
	handle  = extensions.Handle
	seen    = extensions.Observation
	cleanup = extensions.CleanupReport
)

// turn gives an error of one kind another.
func turn(err error, from, to extensions.Kind) error {
	if extensions.IsKind(err, from) {
		return &extensions.Error{Kind: to, Op: "mutant", Err: errors.New("turned")}
	}
	return err
}

// swallow makes an error of one kind success.
func swallow(err error, kind extensions.Kind) error {
	if extensions.IsKind(err, kind) {
		return nil
	}
	return err
}

// provisionWith changes the spec on its way in.
func provisionWith(change func(b *broken, s *spec)) func(*broken, ctx, spec) (handle, seen, error) {
	return func(b *broken, c ctx, s spec) (handle, seen, error) {
		change(b, &s)
		return b.wholeBackend.Provision(c, s)
	}
}

// provisionThen changes the answer on its way out.
func provisionThen(change func(s spec, h *handle, err *error)) func(*broken, ctx, spec) (handle, seen, error) {
	return func(b *broken, c ctx, s spec) (handle, seen, error) {
		h, o, err := b.wholeBackend.Provision(c, s)
		change(s, &h, &err)
		return h, o, err
	}
}

// statusThen changes each observation of an answer about given handles.
func statusThen(change func(b *broken, o *seen)) func(*broken, ctx, []handle) ([]seen, error) {
	return func(b *broken, c ctx, hs []handle) ([]seen, error) {
		all, err := b.wholeBackend.Status(c, hs)
		for i := range all {
			if hs != nil {
				change(b, &all[i])
			}
		}
		return all, err
	}
}

func teardownThen(change func(b *broken, h handle, r *cleanup, err *error)) func(*broken, ctx, handle) (cleanup, error) {
	return func(b *broken, c ctx, h handle) (cleanup, error) {
		r, err := b.wholeBackend.Teardown(c, h)
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		change(b, h, &r, &err)
		return r, err
	}
}

func litter(b *broken) {
	_ = os.MkdirAll(filepath.Join(b.cfg.Values["dir"].(string), "litter", "left"), 0o700)
}

var descriptions atomic.Int64

var coreMutants = map[string]mutant{
	"describe/valid": {describe: func(d *extensions.Descriptor) { d.Title = "" }},
	"describe/stable": {describe: func(d *extensions.Descriptor) {
		d.Doc += strconv.FormatInt(descriptions.Add(1), 10)
	}},
	"describe/fields-documented": {describe: func(d *extensions.Descriptor) {
		d.Config = slices.Clone(d.Config)
		d.Config[0].Doc = ""
	}},

	"core/open-makes-nothing": {open: func(b *broken, err error) (extensions.Backend, error) {
		litter(b)
		return b, err
	}},
	"core/provision-ready":           {status: statusThen(func(_ *broken, o *seen) { o.Handle = handle{} })},
	"core/provision-writes-identity": {provision: provisionWith(func(_ *broken, s *spec) { s.Generation = 1 })},
	"core/provision-idempotent-by-id": {provision: func(b *broken, c ctx, s spec) (handle, seen, error) {
		h, o, err := b.wholeBackend.Provision(c, s)
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		if b.w.seen[string(s.ID)] {
			h.Data = json.RawMessage(`{"another":true}`)
		}
		b.w.seen[string(s.ID)] = err == nil
		return h, o, err
	}},
	"core/provision-keeps-spec": {provision: provisionWith(func(_ *broken, s *spec) {
		if s.Env != nil {
			s.Env["ADDED"] = "1"
		}
	})},
	"core/provision-lost-answer-keeps-handle": {provision: provisionThen(func(_ spec, h *handle, err *error) {
		if *err != nil {
			*h = handle{}
		}
	})},
	"core/provision-exhausted": {provision: provisionThen(func(_ spec, _ *handle, err *error) {
		*err = turn(*err, extensions.KindExhausted, extensions.KindUnavailable)
	})},
	"core/provision-not-here-makes-nothing": {provision: func(b *broken, c ctx, s spec) (handle, seen, error) {
		h, o, err := b.wholeBackend.Provision(c, s)
		if extensions.IsKind(err, extensions.KindUnsupported) {
			_, _, _ = b.wholeBackend.Provision(c, s) // made, and then refused
		}
		return h, o, err
	}},
	"core/provision-invalid-id-refused": {provision: provisionThen(func(_ spec, _ *handle, err *error) {
		*err = turn(*err, extensions.KindInvalid, extensions.KindInternal)
	})},
	"core/provision-too-strong-isolation-refused": {describe: func(d *extensions.Descriptor) {
		d.Capabilities.IsolationLevels = []extensions.Isolation{extensions.IsolationContainer}
	}, provision: func(b *broken, c ctx, s spec) (handle, seen, error) { // it has never heard of one level between
		if floor := s.Isolation; floor != "" && floor != extensions.IsolationUserspace && !extensions.IsolationContainer.Meets(floor) {
			return handle{}, seen{}, extensions.Errorf(extensions.KindUnsupported, "the place has no %s", s.Isolation)
		}
		return b.wholeBackend.Provision(c, s)
	}},
	"core/provision-gpu-refused": {provision: provisionWith(func(_ *broken, s *spec) { s.Resources.GPU = nil })},
	"core/provision-gpu-model-refused": {describe: func(d *extensions.Descriptor) {
		d.Capabilities.GPU, d.Capabilities.GPUModels = true, []string{"H100"}
	}, provision: provisionWith(func(_ *broken, s *spec) { s.Resources.GPU = nil })}, // whatever model it is
	"core/provision-unenforceable-egress-refused": {describe: func(d *extensions.Descriptor) {
		d.Capabilities.Egress, d.Capabilities.CustomNetworkPolicy = extensions.EgressDenyOnly, false
		d.Capabilities.CIDRPorts, d.Capabilities.DomainPorts = "", ""
	}},
	"core/wait-ready-ends-with-context": {waitReady: func(b *broken, c ctx, s spec, h handle) (seen, error) {
		r, err := b.wholeBackend.WaitReady(c, s, h)
		return r, turn(err, extensions.KindTimeout, extensions.KindInternal)
	}},
	"core/allocates-in-steps": {describe: func(d *extensions.Descriptor) { d.Capabilities.CPUStep = 1000 }},
	"core/unenforceable-limits-refused": {describe: func(d *extensions.Descriptor) {
		d.Capabilities.Limits = []extensions.Limit{extensions.LimitMemory}
	}},
	"core/deadline-within-its-grain": {provision: provisionWith(func(_ *broken, s *spec) {
		if time.Until(s.Deadline) > 5*time.Minute { // not one that a check waits for
			s.Deadline = s.Deadline.Add(2 * time.Minute)
		}
	})},
	"core/wait-ready-observes": {waitReady: func(b *broken, c ctx, s spec, h handle) (seen, error) {
		o, err := b.wholeBackend.WaitReady(c, s, h)
		o.StartedAt = o.StartedAt.Add(time.Second)
		return o, err
	}},
	"core/allocates-what-was-asked-for": {provision: provisionWith(func(_ *broken, s *spec) {
		s.Resources.CPU, s.Resources.MemoryMB = nil, nil
	}), also: []string{"core/allocates-in-steps"}},
	"core/probe-later-waits-for-wait-ready": {provision: func(b *broken, c ctx, s spec) (handle, seen, error) {
		h, o, err := b.wholeBackend.Provision(c, s)
		if err == nil && s.ProbeLater {
			_, err = b.wholeBackend.Exec(c, h, extensions.ExecRequest{Command: s.Readiness.Command})
		}
		return h, o, err
	}},
	"core/desktop-runs": {describe: func(d *extensions.Descriptor) {
		d.Capabilities.Provides = d.Capabilities.Provides.With(extensions.Provides{RequirementKinds: []string{extensions.RequireDesktop}})
	}},
	"core/wait-ready-repeats-the-probe": {waitReady: func(b *broken, c ctx, s spec, h handle) (seen, error) {
		if s.Readiness != nil && s.Readiness.Command[0] == "sh" {
			s.Readiness = nil
		}
		return b.wholeBackend.WaitReady(c, s, h)
	}, also: []string{"core/probe-later-waits-for-wait-ready"}},
	"core/find-finds": {find: func(b *broken, c ctx, id extensions.ID) (handle, error) {
		h, err := b.wholeBackend.Find(c, id)
		h.Ref += "x"
		return h, err
	}, also: []string{"core/find-unknown-id"}},
	"core/find-unknown-id": {find: func(b *broken, c ctx, id extensions.ID) (handle, error) {
		h, err := b.wholeBackend.Find(c, id)
		return h, turn(err, extensions.KindNotFound, extensions.KindIndeterminate)
	}},
	"core/expires-at-its-deadline": {status: statusThen(func(_ *broken, o *seen) {
		if o.Phase == extensions.PhaseExpired {
			o.EndedAt = time.Time{}
		}
	})},
	"core/expired-can-be-torn-down": {teardown: func(b *broken, c ctx, h handle) (cleanup, error) {
		if all, err := b.wholeBackend.Status(c, []handle{h}); err == nil && all[0].Phase == extensions.PhaseExpired {
			return cleanup{}, extensions.Errorf(extensions.KindConflict, "it has ended")
		}
		return b.wholeBackend.Teardown(c, h)
	}},
	"core/parallel-calls": {provision: func(b *broken, c ctx, s spec) (handle, seen, error) {
		b.w.mu.Lock()
		busy := b.w.seen["busy"]
		b.w.seen["busy"] = true
		b.w.mu.Unlock()
		if busy {
			return handle{}, seen{}, extensions.Errorf(extensions.KindUnavailable, "one at a time")
		}
		time.Sleep(50 * time.Millisecond)
		h, o, err := b.wholeBackend.Provision(c, s)
		b.w.mu.Lock()
		delete(b.w.seen, "busy")
		b.w.mu.Unlock()
		return h, o, err
	}},
	"core/close-keeps-sandboxes": {close: func(b *broken) error {
		all, err := b.wholeBackend.Status(context.Background(), nil)
		for _, o := range all {
			_, _ = b.wholeBackend.Teardown(context.Background(), o.Handle)
		}
		return err
	}},

	"core/status-keeps-order": {status: func(b *broken, c ctx, hs []handle) ([]seen, error) {
		all, err := b.wholeBackend.Status(c, hs)
		if hs != nil {
			slices.SortFunc(all, func(x, y seen) int { return strings.Compare(string(x.ID), string(y.ID)) })
		}
		return all, err
	}},
	"core/status-nil-lists-ours": {status: func(b *broken, c ctx, hs []handle) ([]seen, error) {
		all, err := b.wholeBackend.Status(c, hs)
		if hs != nil || err != nil {
			return all, err
		}
		theirs := b.cfg
		theirs.Account = "another/account"
		other, err := b.w.Open(c, theirs)
		if err != nil {
			return nil, err
		}
		more, err := other.Status(c, nil)
		return append(all, more...), err
	}},
	"core/status-empty-is-empty": {status: func(b *broken, c ctx, hs []handle) ([]seen, error) {
		if len(hs) == 0 {
			hs = nil
		}
		return b.wholeBackend.Status(c, hs)
	}},
	"core/status-start-is-told-truly": {status: statusThen(func(_ *broken, o *seen) {
		if o.Phase == extensions.PhaseReady {
			o.EndedAt = time.Now()
		}
	})},
	"core/status-vanished-is-absent": {status: statusThen(func(b *broken, o *seen) {
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		if o.Phase == extensions.PhaseAbsent && !b.w.torn[o.ID] {
			o.Phase = extensions.PhaseReady // as it was seen last
		}
	})},
	"core/teardown-removes":         {teardown: teardownThen(func(_ *broken, _ handle, r *cleanup, _ *error) { r.AlreadyGone = true })},
	"core/teardown-gone-is-success": {teardown: teardownThen(func(_ *broken, _ handle, r *cleanup, _ *error) { r.AlreadyGone = false })},
	"core/teardown-foreign-refused": {teardown: teardownThen(func(b *broken, h handle, _ *cleanup, err *error) {
		if b.w.made[h.Ref] != h.ID {
			*err = nil
		}
	})},
	"core/teardown-relabelled-refused": {teardown: teardownThen(func(b *broken, h handle, _ *cleanup, err *error) {
		if b.w.made[h.Ref] == h.ID {
			*err = swallow(*err, extensions.KindConflict)
		}
	})},
	"core/teardown-vanished-is-success": {teardown: teardownThen(func(b *broken, h handle, r *cleanup, err *error) {
		if r.AlreadyGone && !b.w.torn[h.ID] {
			*err = extensions.Errorf(extensions.KindNotFound, "it is gone")
		}
	})},
	"core/teardown-tells-times":    {teardown: teardownThen(func(_ *broken, _ handle, r *cleanup, _ *error) { r.StartedAt = time.Time{} })},
	"core/teardown-leaves-nothing": {teardown: teardownThen(func(b *broken, _ handle, _ *cleanup, _ *error) { litter(b) })},

	"handle/names-its-object": {provision: provisionThen(func(_ spec, h *handle, _ *error) {
		h.Data, _ = json.Marshal(strings.Repeat("x", 5<<10))
	})},
	"handle/roundtrip": {provision: provisionThen(func(_ spec, h *handle, _ *error) { h.Data = json.RawMessage("{") }),
		also: []string{"handle/works-in-another-process"}},
	"handle/works-in-another-process": {status: statusThen(func(b *broken, o *seen) {
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		if !b.mine[o.ID] {
			o.Phase = extensions.PhaseAbsent
		}
	})},

	"errors/classified": {find: func(b *broken, c ctx, id extensions.ID) (handle, error) {
		h, err := b.wholeBackend.Find(c, id)
		if extensions.IsKind(err, extensions.KindNotFound) {
			err = errors.New("not found")
		}
		return h, err
	}},
	"errors/text-is-clean": {provision: provisionThen(func(s spec, _ *handle, err *error) {
		if extensions.IsKind(*err, extensions.KindInvalid) {
			*err = &extensions.Error{Kind: extensions.KindOf(*err), Op: "provision", Err: errors.New("bad id " + string(s.ID))}
		}
	})},
	"errors/unauthorized": {open: func(b *broken, err error) (extensions.Backend, error) {
		if err != nil {
			return nil, turn(err, extensions.KindUnauthorized, extensions.KindInternal)
		}
		return b, nil
	}, also: []string{"errors/each-alternative-opens"}},
	"errors/each-alternative-opens": {open: func(b *broken, err error) (extensions.Backend, error) {
		if len(b.cfg.Credentials) == 2 {
			return nil, extensions.Errorf(extensions.KindUnauthorized, "the api_key is missing")
		}
		if err != nil {
			return nil, err
		}
		return b, nil
	}},
	"errors/throttled-is-told-not-retried": {provision: provisionThen(func(_ spec, _ *handle, err *error) {
		if extensions.IsKind(*err, extensions.KindUnavailable) {
			*err = extensions.Errorf(extensions.KindUnavailable, "too many requests")
		}
	})},
	"errors/poll-tells-a-faltering-answer": {waitReady: func(b *broken, c ctx, s spec, h handle) (seen, error) {
		r, err := b.wholeBackend.WaitReady(c, s, h)
		return r, turn(err, extensions.KindIndeterminate, extensions.KindFailed)
	}},
	"errors/unreachable-is-not-absent": {status: statusThen(func(_ *broken, o *seen) {
		if o.Phase == extensions.PhaseUnreachable {
			o.Phase, o.Err = extensions.PhaseAbsent, nil
		}
	})},

	"cancel/provision-starts-nothing": {provision: func(b *broken, c ctx, s spec) (handle, seen, error) {
		return b.wholeBackend.Provision(context.WithoutCancel(c), s)
	}},
	"cancel/teardown-ends-nothing": {teardown: func(b *broken, c ctx, h handle) (cleanup, error) {
		return b.wholeBackend.Teardown(context.WithoutCancel(c), h)
	}},
	"cancel/nothing-is-absent": {find: func(b *broken, c ctx, id extensions.ID) (handle, error) {
		h, err := b.wholeBackend.Find(c, id)
		if c.Err() != nil {
			err = extensions.Errorf(extensions.KindNotFound, "not found")
		}
		return h, err
	}},

	"secrets/arrive-inside": {provision: provisionWith(func(_ *broken, s *spec) {
		if s.Delivery() == extensions.SecretsEnv {
			s.Secrets = nil
		}
	})},
	"secrets/arrive-as-files": {provision: provisionWith(func(_ *broken, s *spec) {
		if s.Delivery() == extensions.SecretsFile {
			s.Secrets = nil
		}
	})},
	"secrets/files-are-no-environment": {provision: provisionWith(func(_ *broken, s *spec) {
		if s.Delivery() == extensions.SecretsFile {
			s.Env = map[string]string{"ALSO": s.Secrets["CANARY"].Reveal()}
		}
	})},
	"secrets/files-canary-nowhere": {provision: provisionThen(func(s spec, h *handle, _ *error) {
		if s.Delivery() == extensions.SecretsFile {
			h.Data, _ = json.Marshal(s.Secrets["CANARY"].Reveal())
		}
	})},
	"secrets/undeclared-refused": {describe: func(d *extensions.Descriptor) {
		d.Capabilities.SecretsAs = []extensions.SecretDelivery{extensions.SecretsEnv}
	}},
	"secrets/canary-nowhere": {provision: provisionThen(func(s spec, h *handle, _ *error) {
		if s.Delivery() == extensions.SecretsEnv {
			h.Data, _ = json.Marshal(s.Secrets["CANARY"].Reveal())
		}
	})},

	"declared/is-implemented": {open: func(b *broken, err error) (extensions.Backend, error) {
		return struct{ extensions.Backend }{b}, err
	}},
	"declared/implemented-is-declared": {describe: func(d *extensions.Descriptor) {
		d.Powers = slices.DeleteFunc(slices.Clone(d.Powers), func(p extensions.Power) bool { return p == extensions.PowerUsage })
	}},
}
