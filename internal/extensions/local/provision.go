package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// cleanupTime bounds the cleanup after a failure, whatever happened to the caller's context.
const cleanupTime = 30 * time.Second

// Provision implements extensions.Backend. It writes the record before it creates anything, and the init ends
// by itself unless told that its process was recorded. Whatever kills us, Find and Teardown know everything
// that exists.
func (b *Backend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	h, o, err := b.provision(ctx, spec)
	return h, o, failed("provision", spec.ID, err)
}

func (b *Backend) provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	var none extensions.Observation
	if err := ctx.Err(); err != nil {
		return extensions.Handle{}, none, extensions.Errorf(extensions.KindUnavailable, "nothing was started: %w", err)
	}
	if err := accept(spec); err != nil {
		return extensions.Handle{}, none, err
	}
	b.settings.sweepHalves()
	bx := b.settings.box(spec.ID)
	lock, err := bx.make(ctx)
	if err != nil {
		return extensions.Handle{}, none, err
	}
	defer func() { _ = lock.Close() }()
	rec, err := bx.read()
	if err != nil {
		return b.settings.handle(record{ID: spec.ID}), none, err
	}
	if done, err := b.adopt(bx, rec, spec); err != nil {
		return b.settings.handle(rec), none, err
	} else if done {
		return b.settings.handle(rec), b.observe(bx, rec), nil
	}
	if err := b.remove(bx, rec, false); err != nil {
		return b.settings.handle(rec), none, fmt.Errorf("removing the residue of an earlier attempt: %w", err)
	}
	if rec, err = b.create(ctx, bx, spec); err != nil {
		// The cleanup must not use the context that may just have ended.
		if undo := b.remove(bx, rec, true); undo != nil {
			return b.settings.handle(rec), none, errors.Join(err, fmt.Errorf("and its residue could not all be removed: %w", undo))
		}
		return extensions.Handle{}, none, err
	}
	return b.settings.handle(rec), b.observe(bx, rec), nil
}

// adopt decides about an existing sandbox: it is the requested one, it belongs to somebody else, or it must
// give way.
func (b *Backend) adopt(bx box, rec record, spec extensions.Spec) (bool, error) {
	if rec.Account != "" && rec.Account != b.settings.account {
		return false, extensions.Errorf(extensions.KindConflict, "%s belongs to the account %q", spec.ID, rec.Account)
	}
	if rec.Generation > spec.Generation {
		return false, extensions.Errorf(extensions.KindConflict, "another owner took over %s: its generation is %d, not %d", spec.ID,
			rec.Generation, spec.Generation)
	}
	_, ended := bx.tombstone()
	return rec.Generation == spec.Generation && rec.State != stateMaking && rec.Init.alive() && !bx.adrift(rec) && !ended, nil
}

func (b *Backend) create(ctx context.Context, bx box, spec extensions.Spec) (record, error) {
	rec := record{Account: b.settings.account, Generation: spec.Generation, Labels: labels(spec, b.settings.account), State: stateMaking,
		Access: access(spec), Deadline: spec.Deadline.UTC(), ID: spec.ID}
	if err := b.settings.checkRoom(spec.ID); err != nil {
		return rec, err
	}
	if spec.FromSandbox != "" {
		if _, err := b.source(spec.Source); err != nil {
			return rec, err
		}
	}
	if err := bx.write(rec); err != nil {
		return rec, err
	}
	if err := bx.setDeadline(spec.Deadline); err != nil {
		return rec, err
	}
	failpoint("recorded", bx.dir)
	if err := b.launch(ctx, bx, &rec, spec); err != nil {
		return rec, err
	}
	failpoint("launched", bx.dir)
	if err := b.fill(ctx, bx, spec); err != nil {
		return rec, err
	}
	failpoint("filled", bx.dir)
	if err := bx.enter(ctx, spec.Entrypoint); err != nil {
		return rec, err
	}
	rec.State = stateReady
	if spec.Readiness != nil || !spec.Entrypoint.Idle() && spec.Settle > 0 {
		rec.State = stateWaiting
	}
	return rec, bx.write(rec)
}

// enter starts what runs by itself in a sandbox that is complete.
func (b box) enter(ctx context.Context, e extensions.Entrypoint) error {
	if e.Idle() {
		return nil
	}
	req := wire.Request{Op: wire.OpEnter}
	for _, word := range e.Argv {
		req.Argv = append(req.Argv, []byte(word))
	}
	r, err := b.simple(ctx, req, io.Discard)
	if end, ended := b.tombstone(); err != nil && ended && end.Reason == lease.ReasonExited {
		return nil // it ran, and ended before the answer came
	}
	if err == nil && r.Exit != 0 {
		err = extensions.Errorf(extensions.KindFailed, "its entrypoint cannot be started: exit code %d", r.Exit).At("entrypoint").
			WithRemedy("name an executable program that exists inside")
	}
	return err
}

// labels returns the spec's labels with those every sandbox carries.
func labels(spec extensions.Spec, account string) map[string]string {
	l := map[string]string{
		extensions.LabelID: string(spec.ID), extensions.LabelAccount: account,
		extensions.LabelGeneration: fmt.Sprint(spec.Generation), extensions.LabelSpecHash: spec.Hash(),
		extensions.LabelInitialExpires: spec.Deadline.UTC().Format(time.RFC3339),
	}
	maps.Copy(l, spec.Labels)
	return l
}

func access(spec extensions.Spec) string {
	if spec.Workspace.Access == "" {
		return extensions.AccessRW
	}
	return spec.Workspace.Access
}

// accept refuses what this machine cannot honor whatever its kernel offers.
func accept(spec extensions.Spec) error {
	if _, err := extensions.ParseID(string(spec.ID)); err != nil {
		return err
	}
	unsupported := func(what, remedy string) error {
		return extensions.Errorf(extensions.KindUnsupported, "%s", what).WithRemedy("%s", remedy)
	}
	switch {
	case !spec.Deadline.After(time.Now()):
		return extensions.Errorf(extensions.KindInvalid, "the deadline %s has passed", spec.Deadline.UTC().Format(time.RFC3339))
	case spec.Image != nil || spec.Compose != nil || spec.Containers != nil:
		return unsupported("a sandbox on this machine runs no container images",
			"choose an extension with Docker, or drop image, compose and containers")
	case !extensions.IsolationProcess.Meets(spec.Isolation) && spec.Isolation != "":
		return unsupported(fmt.Sprintf("isolation level %q is stronger than this machine's %q", spec.Isolation, extensions.IsolationProcess),
			"choose an extension with containers or virtual machines")
	case !extensions.EgressDenyOnly.Includes(spec.Network.Needs()):
		return unsupported("an allowlist of destinations cannot be enforced on this machine: the network is all or nothing",
			"drop network.egress, set network.default: allow, or choose an extension that filters")
	case spec.IdleReap > 0 && runtime.GOOS != "linux":
		return unsupported("this system does not report the CPU time of programs, so idleness cannot be detected", "remove ttl.idle_reap")
	case spec.Entrypoint.Mode == extensions.EntrypointImage:
		return New().Describe().Capabilities.CheckEntrypoint(spec.Entrypoint)
	case spec.FromSnapshot != nil && access(spec) == extensions.AccessNone:
		return extensions.Errorf(extensions.KindInvalid, "a snapshot is a workspace, and workspace.access is none")
	case !slices.Contains([]string{extensions.AccessNone, extensions.AccessRO, extensions.AccessRW}, access(spec)):
		return extensions.Errorf(extensions.KindInvalid, "workspace.access %q is unknown", spec.Workspace.Access)
	}
	if ref := spec.FromSnapshot; ref != nil && ref.Source != nil {
		if err := New().Describe().AcceptSnapshot(ref); err != nil {
			return err
		}
	}
	if err := checkProbe(spec.Readiness); err != nil {
		return err
	}
	return checkEnv(spec)
}

func checkEnv(spec extensions.Spec) error {
	for _, m := range []map[string]string{spec.Toolchain.Env, spec.Env} {
		for k, v := range m {
			if !extensions.ValidEnvName(k) || strings.ContainsRune(v, 0) {
				return extensions.Errorf(extensions.KindInvalid, "the environment variable %q has an invalid name or a NUL byte", k)
			}
		}
	}
	return spec.CheckSecrets()
}

// environment returns what every program inside starts with; later entries win: the sandbox's own, the
// toolchain's, the spec's, and secrets delivered as variables.
func environment(spec extensions.Spec, home, path string) []string {
	env := []string{"PATH=" + path, "HOME=" + home, "USER=sandbox", "LOGNAME=sandbox", "SHELL=/bin/sh", "LANG=C.UTF-8",
		"SANDBOXER_ID=" + string(spec.ID)}
	for _, m := range []map[string]string{spec.Toolchain.Env, spec.Env} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			env = append(env, k+"="+m[k])
		}
	}
	if spec.Delivery() == extensions.SecretsEnv {
		for _, k := range slices.Sorted(maps.Keys(spec.Secrets)) {
			env = append(env, k+"="+spec.Secrets[k].Reveal())
		}
	}
	return env
}

const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// failpoint is called with the folder concerned between the steps of a create, a teardown and a snapshot;
// tests replace it to die there.
var failpoint = func(step, dir string) {}
