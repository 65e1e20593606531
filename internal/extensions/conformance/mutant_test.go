package conformance

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// mutant is an extension broken in one way: where a field is set, it answers
// in place of the whole stub, which it can still reach through b.
type mutant struct {
	// also are other checks of the family that this breakage cannot but fail.
	also []string

	describe       func(*extensions.Descriptor)
	declare        func(x brokenExtension, values map[string]any) (extensions.Declaration, error)
	open           func(b *broken, err error) (extensions.Backend, error)
	provision      func(b *broken, ctx context.Context, s extensions.Spec) (extensions.Handle, extensions.Observation, error)
	waitReady      func(b *broken, ctx context.Context, s extensions.Spec, h extensions.Handle) (extensions.Observation, error)
	status         func(b *broken, ctx context.Context, hs []extensions.Handle) ([]extensions.Observation, error)
	find           func(b *broken, ctx context.Context, id extensions.ID) (extensions.Handle, error)
	teardown       func(b *broken, ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error)
	close          func(b *broken) error
	exec           func(b *broken, ctx context.Context, h extensions.Handle, r extensions.ExecRequest) (extensions.ExecResult, error)
	logs           func(b *broken, ctx context.Context, h extensions.Handle, r extensions.LogRequest) (io.ReadCloser, error)
	upload         func(b *broken, ctx context.Context, h extensions.Handle, dir string, r io.Reader) error
	download       func(b *broken, ctx context.Context, h extensions.Handle, path string, w io.Writer) error
	dial           func(b *broken, ctx context.Context, h extensions.Handle, service string, port int) (net.Conn, error)
	url            func(b *broken, ctx context.Context, h extensions.Handle, port int) (extensions.URL, error)
	snapshot       func(b *broken, ctx context.Context, h extensions.Handle, s extensions.SnapshotSpec) (extensions.Snapshot, error)
	findSnapshot   func(b *broken, ctx context.Context, id string) (extensions.Snapshot, error)
	statSnapshot   func(b *broken, ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error)
	deleteSnapshot func(b *broken, ctx context.Context, h extensions.SnapshotHandle) error
	readSnapshot   func(b *broken, ctx context.Context, h extensions.SnapshotHandle, w io.Writer) error
	canFork        func(b *broken, ctx context.Context, h extensions.Handle) error
	pause          func(b *broken, ctx context.Context, h extensions.Handle) (extensions.Observation, error)
	resume         func(b *broken, ctx context.Context, h extensions.Handle, to time.Time) (extensions.Observation, error)
	extend         func(b *broken, ctx context.Context, h extensions.Handle, to time.Time) error
	usage          func(b *broken, ctx context.Context, h extensions.Handle) (extensions.Usage, error)
	capacity       func(b *broken, ctx context.Context) (extensions.Capacity, error)
	probe          func(b *broken, ctx context.Context) (extensions.Facts, []extensions.Observation, error)
	estimate       func(b *broken, ctx context.Context, s extensions.Spec, d time.Duration) (extensions.Usage, error)
	prepareImage   func(b *broken, ctx context.Context, s extensions.Spec) (string, error)
	setGeneration  func(b *broken, ctx context.Context, h extensions.Handle, g int64) error
}

type brokenExtension struct {
	*whole
	m mutant
}

func (x brokenExtension) Describe() extensions.Descriptor {
	d := x.whole.Describe()
	if x.m.describe != nil {
		x.m.describe(&d)
	}
	return d
}

func (x brokenExtension) Declare(values map[string]any) (extensions.Declaration, error) {
	if x.m.declare != nil {
		return x.m.declare(x, values)
	}
	return x.whole.Declare(values)
}

func (x brokenExtension) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	b, err := x.whole.Open(ctx, cfg)
	out := &broken{w: x.whole, m: x.m, cfg: cfg, mine: map[extensions.ID]bool{}}
	if err == nil {
		out.wholeBackend = b.(*wholeBackend)
	}
	if x.m.open != nil {
		return x.m.open(out, err)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// broken is a backend of a mutant; wholeBackend is the one that works.
type broken struct {
	*wholeBackend
	w    *whole
	m    mutant
	cfg  extensions.Config
	mine map[extensions.ID]bool // what this very backend made; guarded by w.mu
}

func (b *broken) Provision(ctx context.Context, s extensions.Spec) (h extensions.Handle, o extensions.Observation, err error) {
	if b.m.provision != nil {
		h, o, err = b.m.provision(b, ctx, s)
	} else {
		h, o, err = b.wholeBackend.Provision(ctx, s)
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if !h.IsZero() {
		b.w.made[h.Ref], b.mine[h.ID] = h.ID, true
	}
	return h, o, err
}

func (b *broken) WaitReady(ctx context.Context, s extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	if b.m.waitReady != nil {
		return b.m.waitReady(b, ctx, s, h)
	}
	return b.wholeBackend.WaitReady(ctx, s, h)
}

func (b *broken) Status(ctx context.Context, hs []extensions.Handle) ([]extensions.Observation, error) {
	if b.m.status != nil {
		return b.m.status(b, ctx, hs)
	}
	return b.wholeBackend.Status(ctx, hs)
}

func (b *broken) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	if b.m.find != nil {
		return b.m.find(b, ctx, id)
	}
	return b.wholeBackend.Find(ctx, id)
}

func (b *broken) Teardown(ctx context.Context, h extensions.Handle) (r extensions.CleanupReport, err error) {
	if b.m.teardown != nil {
		r, err = b.m.teardown(b, ctx, h)
	} else {
		r, err = b.wholeBackend.Teardown(ctx, h)
	}
	if err == nil {
		b.w.mu.Lock()
		b.w.torn[h.ID] = true
		b.w.mu.Unlock()
	}
	return r, err
}

func (b *broken) Close() error {
	if b.m.close != nil {
		return b.m.close(b)
	}
	return b.wholeBackend.Close()
}

func (b *broken) Exec(ctx context.Context, h extensions.Handle, r extensions.ExecRequest) (extensions.ExecResult, error) {
	if b.m.exec != nil {
		return b.m.exec(b, ctx, h, r)
	}
	return b.wholeBackend.Exec(ctx, h, r)
}

func (b *broken) Logs(ctx context.Context, h extensions.Handle, r extensions.LogRequest) (io.ReadCloser, error) {
	if b.m.logs != nil {
		return b.m.logs(b, ctx, h, r)
	}
	return b.wholeBackend.Logs(ctx, h, r)
}

func (b *broken) Upload(ctx context.Context, h extensions.Handle, dir string, r io.Reader) error {
	if b.m.upload != nil {
		return b.m.upload(b, ctx, h, dir, r)
	}
	return b.wholeBackend.Upload(ctx, h, dir, r)
}

func (b *broken) Download(ctx context.Context, h extensions.Handle, path string, w io.Writer) error {
	if b.m.download != nil {
		return b.m.download(b, ctx, h, path, w)
	}
	return b.wholeBackend.Download(ctx, h, path, w)
}

func (b *broken) Dial(ctx context.Context, h extensions.Handle, service string, port int) (net.Conn, error) {
	if b.m.dial != nil {
		return b.m.dial(b, ctx, h, service, port)
	}
	return b.wholeBackend.Dial(ctx, h, service, port)
}

func (b *broken) URL(ctx context.Context, h extensions.Handle, port int) (extensions.URL, error) {
	if b.m.url != nil {
		return b.m.url(b, ctx, h, port)
	}
	return b.wholeBackend.URL(ctx, h, port)
}

func (b *broken) Snapshot(ctx context.Context, h extensions.Handle, s extensions.SnapshotSpec) (extensions.Snapshot, error) {
	if b.m.snapshot != nil {
		return b.m.snapshot(b, ctx, h, s)
	}
	return b.wholeBackend.Snapshot(ctx, h, s)
}

func (b *broken) FindSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	if b.m.findSnapshot != nil {
		return b.m.findSnapshot(b, ctx, id)
	}
	return b.wholeBackend.FindSnapshot(ctx, id)
}

func (b *broken) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
	if b.m.statSnapshot != nil {
		return b.m.statSnapshot(b, ctx, h)
	}
	return b.wholeBackend.StatSnapshot(ctx, h)
}

func (b *broken) DeleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	if b.m.deleteSnapshot != nil {
		return b.m.deleteSnapshot(b, ctx, h)
	}
	return b.wholeBackend.DeleteSnapshot(ctx, h)
}

func (b *broken) ReadSnapshot(ctx context.Context, h extensions.SnapshotHandle, w io.Writer) error {
	if b.m.readSnapshot != nil {
		return b.m.readSnapshot(b, ctx, h, w)
	}
	return b.wholeBackend.ReadSnapshot(ctx, h, w)
}

func (b *broken) CanFork(ctx context.Context, h extensions.Handle) error {
	if b.m.canFork != nil {
		return b.m.canFork(b, ctx, h)
	}
	return b.wholeBackend.CanFork(ctx, h)
}

func (b *broken) Pause(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	if b.m.pause != nil {
		return b.m.pause(b, ctx, h)
	}
	return b.wholeBackend.Pause(ctx, h)
}

func (b *broken) Resume(ctx context.Context, h extensions.Handle, to time.Time) (extensions.Observation, error) {
	if b.m.resume != nil {
		return b.m.resume(b, ctx, h, to)
	}
	return b.wholeBackend.Resume(ctx, h, to)
}

func (b *broken) Extend(ctx context.Context, h extensions.Handle, to time.Time) error {
	if b.m.extend != nil {
		return b.m.extend(b, ctx, h, to)
	}
	return b.wholeBackend.Extend(ctx, h, to)
}

func (b *broken) Usage(ctx context.Context, h extensions.Handle) (extensions.Usage, error) {
	if b.m.usage != nil {
		return b.m.usage(b, ctx, h)
	}
	return b.wholeBackend.Usage(ctx, h)
}

func (b *broken) Capacity(ctx context.Context) (extensions.Capacity, error) {
	if b.m.capacity != nil {
		return b.m.capacity(b, ctx)
	}
	return b.wholeBackend.Capacity(ctx)
}

func (b *broken) Probe(ctx context.Context) (extensions.Facts, []extensions.Observation, error) {
	if b.m.probe != nil {
		return b.m.probe(b, ctx)
	}
	return b.wholeBackend.Probe(ctx)
}

func (b *broken) Estimate(ctx context.Context, s extensions.Spec, d time.Duration) (extensions.Usage, error) {
	if b.m.estimate != nil {
		return b.m.estimate(b, ctx, s, d)
	}
	return b.wholeBackend.Estimate(ctx, s, d)
}

func (b *broken) PrepareImage(ctx context.Context, s extensions.Spec) (string, error) {
	if b.m.prepareImage != nil {
		return b.m.prepareImage(b, ctx, s)
	}
	return b.wholeBackend.PrepareImage(ctx, s)
}

func (b *broken) SetGeneration(ctx context.Context, h extensions.Handle, g int64) error {
	if b.m.setGeneration != nil {
		return b.m.setGeneration(b, ctx, h, g)
	}
	return b.wholeBackend.SetGeneration(ctx, h, g)
}
