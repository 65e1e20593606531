package place

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Can reports that the place has an optional power: nil, or KindUnsupported
// with the extensions that have it.
func (b *Backend) Can(p extensions.Power) error {
	if b.Binding.Descriptor.Has(p) {
		return nil
	}
	return b.places.Unsupported(b.Binding.ID, p)
}

// power asserts one optional interface of an opened backend: the only place
// that does.
func power[T any](b *Backend, p extensions.Power) (T, error) {
	if v, ok := b.backend.(T); ok && b.Binding.Descriptor.Has(p) {
		return v, nil
	}
	var zero T
	return zero, b.places.Unsupported(b.Binding.ID, p)
}

// Unsupported is the error of a binding without a power. It names those that
// have it.
func (p *Places) Unsupported(binding string, power extensions.Power) error {
	var can []string
	for _, b := range p.Catalog.Bindings {
		if b.Descriptor.Has(power) {
			can = append(can, b.ID)
		}
	}
	slices.Sort(can)
	err := extensions.Errorf(extensions.KindUnsupported, "%s has no %q", binding, power)
	if len(can) == 0 {
		return err.WithRemedy("no extension of this catalog has it")
	}
	return err.WithRemedy("use a profile placed on one that has it: %s", strings.Join(can, ", "))
}

// Narrower is what takes from a binding's capabilities those that a host lacks;
// false where its extension has no hosts that differ. It dials nothing.
func (p *Places) Narrower(b catalog.Binding) (extensions.HostNarrower, bool) {
	n, ok := p.Handlers[b.Handler].(extensions.HostNarrower)
	return n, ok
}

// ChecksSpecs reports whether a binding's extension judges a request before it
// is asked for it.
func (p *Places) ChecksSpecs(handler string) bool {
	_, ok := p.Handlers[handler].(extensions.SpecChecker)
	return ok
}

// CheckSpec has an extension refuse a spec before it is asked for it, and say
// what of it is left out. It opens nothing.
func (p *Places) CheckSpec(ctx context.Context, at Address, spec extensions.Spec) (notes []string, err error) {
	binding, cfg, err := p.config(at)
	if err != nil {
		return nil, err
	}
	checker, ok := p.Handlers[binding.Handler].(extensions.SpecChecker)
	if !ok {
		return nil, nil
	}
	err = p.invoke(ctx, call{op: "check", binding: binding.ID, timeout: timeoutLook, secrets: cfg.Credentials}, func(ctx context.Context) (err error) {
		notes, err = checker.CheckSpec(ctx, cfg, spec)
		return err
	})
	return notes, err
}

// Extend tells the place a sandbox's new end.
func (b *Backend) Extend(ctx context.Context, h extensions.Handle, end time.Time) error {
	x, err := power[extensions.Extender](b, extensions.PowerExtend)
	if err != nil {
		return err
	}
	return b.change(ctx, call{op: "extend", id: h.ID, timeout: timeoutChange}, func(ctx context.Context) error { return x.Extend(ctx, h, end) })
}

// SetGeneration writes a generation on the sandbox's object.
func (b *Backend) SetGeneration(ctx context.Context, h extensions.Handle, generation int64) error {
	x, err := power[extensions.GenerationSetter](b, extensions.PowerGenerationSet)
	if err != nil {
		return err
	}
	return b.change(ctx, call{op: "set-generation", id: h.ID, timeout: timeoutChange}, func(ctx context.Context) error { return x.SetGeneration(ctx, h, generation) })
}

// Command is one command to run inside.
type Command struct {
	extensions.ExecRequest
	Op      string                       // in errors and the log; "" = exec
	Secrets map[string]extensions.Secret // hidden in errors
}

// Exec runs a command once.
func (b *Backend) Exec(ctx context.Context, h extensions.Handle, cmd Command) (res extensions.ExecResult, err error) {
	x, err := power[extensions.Execer](b, extensions.PowerExec)
	if err != nil {
		return res, err
	}
	// The place enforces the command's own timeout; ours only catches one that never answers.
	timeout := cmp.Or(cmd.Timeout, extensions.DefaultExecTimeout) + timeoutLook
	c := call{op: cmp.Or(cmd.Op, "exec"), id: h.ID, timeout: timeout, secrets: cmd.Secrets, once: true}
	err = b.call(ctx, c, func(ctx context.Context) (err error) {
		res, err = x.Exec(ctx, h, cmd.ExecRequest)
		return err
	})
	return res, err
}

// Logs streams what the sandbox's own processes print. The stream outlives any
// deadline of the call.
func (b *Backend) Logs(ctx context.Context, h extensions.Handle, req extensions.LogRequest) (io.ReadCloser, error) {
	x, err := power[extensions.LogStreamer](b, extensions.PowerLogs)
	if err != nil {
		return nil, err
	}
	r, err := x.Logs(ctx, h, req)
	return r, b.Classify("logs", h.ID, nil, err)
}

// Upload extracts a tar stream below dir inside, once.
func (b *Backend) Upload(ctx context.Context, h extensions.Handle, dir string, tar io.Reader) error {
	x, err := power[extensions.FileTransfer](b, extensions.PowerFiles)
	if err != nil {
		return err
	}
	return b.call(ctx, call{op: "upload", id: h.ID, timeout: timeoutProvision, once: true}, func(ctx context.Context) error { return x.Upload(ctx, h, dir, tar) })
}

// Download writes path inside as a tar stream, once. With an error, lacks is not
// nil where the stream is whole and only lacks some objects.
func (b *Backend) Download(ctx context.Context, h extensions.Handle, path string, w io.Writer) (lacks *extensions.Incomplete, err error) {
	x, err := power[extensions.FileTransfer](b, extensions.PowerFiles)
	if err != nil {
		return nil, err
	}
	err = b.call(ctx, call{op: "download", id: h.ID, timeout: timeoutProvision, once: true}, func(ctx context.Context) error {
		err := x.Download(ctx, h, path, w)
		errors.As(err, &lacks) // before its text is redacted
		return err
	})
	return lacks, err
}

// Dial connects to a port of a service inside, once.
func (b *Backend) Dial(ctx context.Context, h extensions.Handle, service string, port int) (conn io.ReadWriteCloser, err error) {
	x, err := power[extensions.PortForwarder](b, extensions.PowerPorts)
	if err != nil {
		return nil, err
	}
	err = b.call(ctx, call{op: "dial", id: h.ID, timeout: timeoutDial, once: true}, func(ctx context.Context) (err error) {
		conn, err = x.Dial(ctx, h, service, port)
		return err
	})
	return conn, err
}

// Probe looks at what the place's machine offers. A listing that came with it
// is kept.
func (b *Backend) Probe(ctx context.Context) (facts extensions.HostFacts, err error) {
	x, err := power[extensions.HostProber](b, extensions.PowerProbe)
	if err != nil {
		return facts, err
	}
	var all []extensions.Observation
	epoch := b.now()
	err = b.call(ctx, call{op: "probe", timeout: timeoutProbe}, func(ctx context.Context) (err error) {
		facts, all, err = x.Probe(ctx)
		return err
	})
	if err == nil && all != nil {
		b.keep(epoch, all)
	}
	return facts, err
}

// Capacity is what a place says of its room, within a few seconds; numbers that
// make no sense are none.
func (p *Places) Capacity(ctx context.Context, at Address) (told extensions.Capacity, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeoutRoom)
	defer cancel()
	b, err := p.Open(ctx, at)
	if err != nil {
		return told, err
	}
	x, err := power[extensions.CapacityReader](b, extensions.PowerCapacity)
	if err != nil {
		return told, err
	}
	err = b.call(ctx, call{op: "capacity", timeout: timeoutRoom, once: true}, func(ctx context.Context) (err error) {
		told, err = x.Capacity(ctx)
		return err
	})
	if err != nil || told.Max != nil && *told.Max < 0 || told.Used != nil && *told.Used < 0 {
		return extensions.Capacity{}, err
	}
	return told, nil
}
