package exttest

import (
	"reflect"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/conformance"
)

// Harness is the suite's, whose functions get the testing.TB of the check that calls them.
type Harness = conformance.HarnessFor[testing.TB]

// Listener is the suite's.
type Listener = conformance.Listener

// Option is the suite's.
type Option = conformance.Option

// WayName is the suite's.
const WayName = conformance.WayName

// Run runs every check that applies to the extension as its own subtest: first those of a group that share a sandbox, one
// after the other, then the others side by side. -short skips them all.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts no sandboxes")
	}
	for _, group := range conformance.Groups(t, suites(h)) {
		t.Run(group.Name, func(t *testing.T) {
			if !h.Serial {
				t.Parallel()
			}
			group.Begin(t)
			for _, c := range group.Checks {
				t.Run(c.Name, func(t *testing.T) {
					if !h.Serial && !c.Shares {
						t.Parallel()
					}
					c.Run(t)
				})
			}
		})
	}
}

// Spec is the suite's minimal spec, which options change.
func Spec(t testing.TB, cfg extensions.Config, opts ...Option) extensions.Spec {
	t.Helper()
	return conformance.Spec(t, cfg, opts...)
}

// The options of the suite's specs, and their labels, for adapters' own tests.
var (
	Labels         = conformance.Labels
	With           = conformance.With
	WithTTL        = conformance.WithTTL
	WithEnv        = conformance.WithEnv
	WithSecret     = conformance.WithSecret
	WithSecretsAs  = conformance.WithSecretsAs
	WithWorkspace  = conformance.WithWorkspace
	WithEntrypoint = conformance.WithEntrypoint
)

// suites returns h for the suite, whose checks all run with a testing.TB here: the functions of the result take any TB
// and pass on the testing.TB that it is.
func suites(h Harness) (out conformance.Harness) {
	from, to := reflect.ValueOf(h), reflect.ValueOf(&out).Elem()
	for i := range from.NumField() {
		if field := to.Field(i); field.CanSet() {
			field.Set(passing(from.Field(i), field.Type()))
		}
	}
	return out
}

// passing returns v, a field of a Harness, as a field of the suite's.
func passing(v reflect.Value, as reflect.Type) reflect.Value {
	switch {
	case v.Type() == as:
		return v
	case v.IsNil():
		return reflect.Zero(as)
	case as.Kind() == reflect.Map:
		out := reflect.MakeMap(as)
		for k, hook := range v.Seq2() {
			out.SetMapIndex(k, passing(hook, as.Elem()))
		}
		return out
	}
	return reflect.MakeFunc(as, func(args []reflect.Value) []reflect.Value {
		args[0] = reflect.ValueOf(args[0].Interface().(testing.TB))
		return v.Call(args)
	})
}
