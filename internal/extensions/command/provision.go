package command

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Provision implements extensions.Backend. What the sandbox starts with comes with WaitReady.
func (b *backend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	h, o, err := b.provision(ctx, spec)
	return h, o, failed("provision", spec.ID, err)
}

func (b *backend) provision(ctx context.Context, spec extensions.Spec) (h extensions.Handle, o extensions.Observation, err error) {
	if err := b.refuse(spec); err != nil {
		return h, o, err
	}
	digest, err := b.digest()
	if err != nil {
		return h, o, err
	}
	labels := maps.Clone(spec.Labels)
	labels[labelDigest] = digest
	env := maps.Clone(spec.Toolchain.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, spec.Env)
	secrets := map[string]string{}
	for name, s := range spec.Secrets {
		secrets[name] = s.Reveal()
	}
	a, err := b.call(ctx, request{Verb: verbProvision, ID: spec.ID, Name: spec.Name, Region: spec.Region, Labels: labels,
		Deadline: at(spec.Deadline), CreatedAt: at(spec.CreatedAt), Env: env, Secrets: secrets, Spec: &spec})
	maybe := handle(spec.ID, "", digest, "")
	if err != nil {
		if told := (&extensions.Error{}); errors.As(err, &told) && !madeNothing(told.Kind) {
			return maybe, o, err
		}
		return h, o, err // refused, or never begun
	}
	s, err := one(b, verbProvision, a, spec.ID)
	if err != nil {
		return maybe, o, err
	}
	o = s.observe(digest)
	if o.Phase == extensions.PhaseReady { // not before it has its contents
		o.Phase, o.Reachability = extensions.PhaseProvisioning, extensions.Reachability{}
	}
	return o.Handle, o, nil
}

// madeNothing are the kinds with which a program promises that there is no sandbox.
func madeNothing(k extensions.Kind) bool {
	return k != extensions.KindIndeterminate && k != extensions.KindFailed
}

// digest is what the program is now.
func (b *backend) digest() (string, error) {
	file, err := resolve(b.command)
	if err != nil {
		return "", err
	}
	sum, err := digestOf(file)
	if err != nil {
		return "", notStarted(err)
	}
	return sum, nil
}

// at is a time as JSON writes it best.
func at(t time.Time) *time.Time {
	utc := t.UTC()
	return &utc
}

// one is the answer of a verb about one sandbox.
func one(b *backend, verb string, a answer, id extensions.ID) (s sandbox, err error) {
	if n := len(*a.Sandboxes); n != 1 {
		return s, lost(verb, unknown("there are %d sandboxes in it, want one", n), "")
	}
	s = (*a.Sandboxes)[0]
	if err := s.check(b, id); err != nil {
		return s, lost(verb, err, "")
	}
	return s, nil
}
