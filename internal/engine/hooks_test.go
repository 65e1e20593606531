package engine_test

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
)

// hooked is the stub vendor with some of what it says and does replaced.
type hooked struct {
	handler string                                // "" = the stub's own
	says    func(d *extensions.Descriptor)        // may be nil
	before  func(ctx context.Context) error       // each Open; may be nil
	does    func(c *calls, cfg extensions.Config) // after each Open; may be nil
}

// calls are what a backend does. A hook replaces some, and may call what was
// there.
type calls struct {
	Provision    func(context.Context, extensions.Spec) (extensions.Handle, extensions.Observation, error)
	WaitReady    func(context.Context, extensions.Spec, extensions.Handle) (extensions.Observation, error)
	Status       func(context.Context, []extensions.Handle) ([]extensions.Observation, error)
	Find         func(context.Context, extensions.ID) (extensions.Handle, error)
	Exec         func(context.Context, extensions.Handle, extensions.ExecRequest) (extensions.ExecResult, error)
	Snapshot     func(context.Context, extensions.Handle, extensions.SnapshotSpec) (extensions.Snapshot, error)
	StatSnapshot func(context.Context, extensions.SnapshotHandle) (extensions.Snapshot, error)
	ReadSnapshot func(context.Context, extensions.SnapshotHandle, io.Writer) error
	Probe        func(context.Context) (extensions.Facts, []extensions.Observation, error)
	Teardown     func(context.Context, extensions.Handle) (extensions.CleanupReport, error)
	Usage        func(context.Context, extensions.Handle) (extensions.Usage, error)
	Estimate     func(context.Context, extensions.Spec, time.Duration) (extensions.Usage, error)
	PrepareImage func(context.Context, extensions.Spec) (string, error) // the stub has none
}

func (x *hooked) Describe() extensions.Descriptor {
	d := saasstub.New().Describe()
	if x.handler != "" {
		d.Handler = x.handler
	}
	if x.says != nil {
		x.says(&d)
	}
	return d
}

func (x *hooked) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	if x.before != nil {
		if err := x.before(ctx); err != nil {
			return nil, err
		}
	}
	be, err := saasstub.New().Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	all := be.(everyPower)
	c := calls{Provision: all.Provision, WaitReady: all.WaitReady, Status: all.Status, Find: all.Find, Exec: all.Exec,
		Snapshot: all.Snapshot, StatSnapshot: all.StatSnapshot, ReadSnapshot: all.ReadSnapshot,
		Teardown: all.Teardown, Usage: all.Usage, Estimate: all.Estimate}
	if x.does != nil {
		x.does(&c, cfg)
	}
	return hookedBackend{all, c}, nil
}

// everyPower is what the stub vendor can do. Which of it counts is what the
// descriptor says.
type everyPower interface {
	extensions.Backend
	extensions.Execer
	extensions.LogStreamer
	extensions.FileTransfer
	extensions.URLGiver
	extensions.Snapshotter
	extensions.SnapshotReader
	extensions.Forker
	extensions.Pauser
	extensions.Extender
	extensions.GenerationSetter
	extensions.UsageReader
	extensions.Estimator
	extensions.CapacityReader
}

type hookedBackend struct {
	everyPower
	calls calls
}

func (b hookedBackend) Provision(ctx context.Context, s extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	return b.calls.Provision(ctx, s)
}

func (b hookedBackend) WaitReady(ctx context.Context, s extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	return b.calls.WaitReady(ctx, s, h)
}

func (b hookedBackend) Status(ctx context.Context, hs []extensions.Handle) ([]extensions.Observation, error) {
	return b.calls.Status(ctx, hs)
}

func (b hookedBackend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	return b.calls.Find(ctx, id)
}

func (b hookedBackend) Exec(ctx context.Context, h extensions.Handle, r extensions.ExecRequest) (extensions.ExecResult, error) {
	return b.calls.Exec(ctx, h, r)
}

func (b hookedBackend) Snapshot(ctx context.Context, h extensions.Handle, s extensions.SnapshotSpec) (extensions.Snapshot, error) {
	return b.calls.Snapshot(ctx, h, s)
}

func (b hookedBackend) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
	return b.calls.StatSnapshot(ctx, h)
}

func (b hookedBackend) Probe(ctx context.Context) (extensions.Facts, []extensions.Observation, error) {
	return b.calls.Probe(ctx)
}

func (b hookedBackend) PrepareImage(ctx context.Context, s extensions.Spec) (string, error) {
	return b.calls.PrepareImage(ctx, s)
}

func (b hookedBackend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	return b.calls.Teardown(ctx, h)
}

func (b hookedBackend) Usage(ctx context.Context, h extensions.Handle) (extensions.Usage, error) {
	return b.calls.Usage(ctx, h)
}

func (b hookedBackend) Estimate(ctx context.Context, s extensions.Spec, d time.Duration) (extensions.Usage, error) {
	return b.calls.Estimate(ctx, s, d)
}

func (b hookedBackend) ReadSnapshot(ctx context.Context, h extensions.SnapshotHandle, w io.Writer) error {
	return b.calls.ReadSnapshot(ctx, h, w)
}
