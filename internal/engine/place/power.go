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

// Can returns nil if the place has the power, else KindUnsupported with the extensions that have it.
func (b *Backend) Can(p extensions.Power) error {
	if b.Binding.Descriptor.Has(p) {
		return nil
	}
	return b.places.Unsupported(b.Binding.ID, p)
}

// power asserts one optional interface of an opened backend. No other code does.
func power[T any](b *Backend, p extensions.Power) (T, error) {
	if v, ok := b.backend.(T); ok && b.Binding.Descriptor.Has(p) {
		return v, nil
	}
	var zero T
	return zero, b.places.Unsupported(b.Binding.ID, p)
}

// Unsupported returns the error of a binding without a power. It lists those that have it.
func (p *Places) Unsupported(binding string, power extensions.Power) error {
	var can []string
	for _, b := range p.Catalog.Bindings {
		if b.Descriptor.Has(power) && !b.Descriptor.NamedOnly {
			can = append(can, b.ID)
		}
	}
	slices.Sort(can)
	err := extensions.Errorf(extensions.KindUnsupported, "%s has no %q", binding, power)
	if len(can) == 0 {
		return err.WithRemedy("no extension of this catalog has it")
	}
	return err.WithRemedy("use a profile that runs on one of %s", strings.Join(can, ", "))
}

// Narrower returns the extension's function that narrows a binding's capabilities to a host's; false if its hosts do
// not differ. It dials nothing.
func (p *Places) Narrower(b catalog.Binding) (extensions.HostNarrower, bool) {
	n, ok := p.Handlers[b.Handler].(extensions.HostNarrower)
	return n, ok
}

// ChecksSpecs reports whether a binding's extension checks a request before it is called.
func (p *Places) ChecksSpecs(handler string) bool {
	_, ok := p.Handlers[handler].(extensions.SpecChecker)
	return ok
}

// CheckSpec lets an extension refuse a spec before it is called, and list the parts without effect. It opens nothing.
func (p *Places) CheckSpec(ctx context.Context, at Address, spec extensions.Spec) (notes []string, err error) {
	binding, cfg, err := p.config(at)
	if err != nil {
		return nil, err
	}
	checker, ok := p.Handlers[binding.Handler].(extensions.SpecChecker)
	if !ok {
		return nil, nil
	}
	err = p.invoke(ctx, call{op: "check", binding: binding.ID, timeout: timeoutLook, patience: patienceLook, secrets: cfg.Credentials},
		func(ctx context.Context) (err error) {
			notes, err = checker.CheckSpec(ctx, cfg, spec)
			return err
		})
	return notes, err
}

// Extend sends the place a sandbox's new deadline.
func (b *Backend) Extend(ctx context.Context, h extensions.Handle, deadline time.Time) error {
	x, err := power[extensions.Extender](b, extensions.PowerExtend)
	if err != nil {
		return err
	}
	return b.change(ctx, call{op: "extend", id: h.ID, timeout: timeoutChange, patience: patienceChange, repeatable: true},
		func(ctx context.Context) error { return x.Extend(ctx, h, deadline) })
}

// CanFork asks whether a sandbox can be forked now. It makes nothing.
func (b *Backend) CanFork(ctx context.Context, h extensions.Handle) error {
	x, err := power[extensions.Forker](b, extensions.PowerFork)
	if err != nil {
		return err
	}
	return b.call(ctx, call{op: "fork", id: h.ID, timeout: timeoutLook, patience: patienceLook},
		func(ctx context.Context) error { return x.CanFork(ctx, h) })
}

// SetGeneration writes a generation on the sandbox's object.
func (b *Backend) SetGeneration(ctx context.Context, h extensions.Handle, generation int64) error {
	x, err := power[extensions.GenerationSetter](b, extensions.PowerGenerationSet)
	if err != nil {
		return err
	}
	return b.change(ctx, call{op: "set-generation", id: h.ID, timeout: timeoutChange, patience: patienceChange},
		func(ctx context.Context) error { return x.SetGeneration(ctx, h, generation) })
}

// Command is one command to run inside.
type Command struct {
	extensions.ExecRequest
	Op      string                       // in errors and the log; "" = exec
	Secrets map[string]extensions.Secret // hidden in errors, beside the sandbox's own
}

// Exec runs a command once.
func (b *Backend) Exec(ctx context.Context, h extensions.Handle, cmd Command) (res extensions.ExecResult, err error) {
	x, err := power[extensions.Execer](b, extensions.PowerExec)
	if err != nil {
		return res, err
	}
	// The place enforces the command's own timeout; ours catches only a place that never answers.
	timeout := cmp.Or(cmd.Timeout, extensions.DefaultExecTimeout) + timeoutLook
	c := call{op: cmp.Or(cmd.Op, "exec"), id: h.ID, timeout: timeout, secrets: cmd.Secrets}
	err = b.call(ctx, c, func(ctx context.Context) (err error) {
		res, err = x.Exec(ctx, h, cmd.ExecRequest)
		return err
	})
	return res, err
}

// Logs streams the output of the sandbox's own processes, without a deadline.
func (b *Backend) Logs(ctx context.Context, h extensions.Handle, req extensions.LogRequest) (io.ReadCloser, error) {
	x, err := power[extensions.LogStreamer](b, extensions.PowerLogs)
	if err != nil {
		return nil, err
	}
	r, err := x.Logs(ctx, h, req)
	return r, b.Classify("logs", h.ID, err)
}

// Upload extracts a tar stream below dir inside, once.
func (b *Backend) Upload(ctx context.Context, h extensions.Handle, dir string, tar io.Reader) error {
	x, err := power[extensions.FileTransfer](b, extensions.PowerFiles)
	if err != nil {
		return err
	}
	return b.call(ctx, call{op: "upload", id: h.ID, timeout: timeoutProvision},
		func(ctx context.Context) error { return x.Upload(ctx, h, dir, tar) })
}

// Download writes path inside as a tar stream, once. With an error, lacks is not nil if the stream is complete except
// for some objects.
func (b *Backend) Download(ctx context.Context, h extensions.Handle, path string, w io.Writer) (lacks *extensions.Incomplete, err error) {
	x, err := power[extensions.FileTransfer](b, extensions.PowerFiles)
	if err != nil {
		return nil, err
	}
	err = b.call(ctx, call{op: "download", id: h.ID, timeout: timeoutProvision, inside: true}, func(ctx context.Context) error {
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
	err = b.call(ctx, call{op: "dial", id: h.ID, timeout: timeoutDial}, func(ctx context.Context) (err error) {
		conn, err = x.Dial(ctx, h, service, port)
		return err
	})
	return conn, err
}

// URL asks for the address of a port inside.
func (b *Backend) URL(ctx context.Context, h extensions.Handle, port int) (u extensions.URL, err error) {
	x, err := power[extensions.URLGiver](b, extensions.PowerURL)
	if err != nil {
		return u, err
	}
	err = b.call(ctx, call{op: "url", id: h.ID, timeout: timeoutLook, patience: patienceLook}, func(ctx context.Context) (err error) {
		u, err = x.URL(ctx, h, port)
		return err
	})
	return u, err
}

// Probe returns the facts of the place, and keeps a listing that comes with them.
func (b *Backend) Probe(ctx context.Context) (facts extensions.Facts, err error) {
	x, err := power[extensions.Prober](b, extensions.PowerProbe)
	if err != nil {
		return facts, err
	}
	var all []extensions.Observation
	epoch := b.now()
	err = b.call(ctx, call{op: "probe", timeout: timeoutProbe, patience: patienceLook}, func(ctx context.Context) (err error) {
		facts, all, err = x.Probe(ctx)
		return err
	})
	if err == nil && all != nil {
		b.keep(epoch, all)
	}
	return facts, err
}

// Capacity returns a place's limit and use within a few seconds; invalid numbers count as unknown.
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
	err = b.call(ctx, call{op: "capacity", timeout: timeoutRoom}, func(ctx context.Context) (err error) {
		told, err = x.Capacity(ctx)
		return err
	})
	if err != nil || told.Max != nil && *told.Max < 0 || told.Used != nil && *told.Used < 0 {
		return extensions.Capacity{}, err
	}
	return told, nil
}
