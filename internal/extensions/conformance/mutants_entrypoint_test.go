package conformance

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var entrypointMutants = map[string]mutant{
	"entrypoint/undeclared-refused": {describe: func(d *extensions.Descriptor) {
		d.Capabilities.Entrypoints = []extensions.EntrypointMode{extensions.EntrypointIdle, extensions.EntrypointArgv}
	}},
	"entrypoint/runs-by-itself": {provision: provisionWith(func(_ *broken, s *spec) {
		if !s.Entrypoint.Idle() {
			s.Env = nil
		}
	})},
	"entrypoint/has-the-secrets": {provision: provisionWith(func(_ *broken, s *spec) {
		if !s.Entrypoint.Idle() {
			s.Secrets = nil
		}
	})},
	"entrypoint/exit-ends-the-sandbox": {status: statusThen(func(_ *broken, o *seen) {
		if o.Phase == extensions.PhaseTerminated || o.Phase == extensions.PhaseFailed {
			o.EndedAt = time.Time{}
		}
	})},
	"entrypoint/ended-is-not-extended": {extend: func(b *broken, c ctx, h handle, to time.Time) error {
		return swallow(b.wholeBackend.Extend(c, h, to), extensions.KindNotFound)
	}},
	"entrypoint/exit-before-ready-fails": {waitReady: func(b *broken, c ctx, s spec, h handle) (seen, error) {
		o, err := b.wholeBackend.WaitReady(c, s, h)
		return o, turn(err, extensions.KindFailed, extensions.KindInternal)
	}},
	"entrypoint/runs-the-image": {provision: provisionWith(func(_ *broken, s *spec) {
		if s.Entrypoint.Mode == extensions.EntrypointImage {
			s.Entrypoint = extensions.Entrypoint{}
		}
	})},
}
