package composessh

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// A service that crashes while the probe is tried is the failure, and nothing is
// waited for any longer: neither in the create, nor in a wait that follows one.
func TestAServiceThatCrashesBeforeTheProbeAnswersIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file  string
		probe extensions.Probe
		want  []string
	}{
		"the one that is asked": {`
services:
  web: {image: IMAGE, command: [sh, -c, "sleep 2; echo no such table; exit 3"]}
`, extensions.Probe{TCP: "localhost:80"}, []string{"web has ended with exit code 3", "no such table"}},
		"another one": {`
services:
  web: {image: IMAGE, command: [sleep, "600"]}
  db: {image: IMAGE, command: [sh, -c, "sleep 2; echo out of space; exit 4"]}
`, extensions.Probe{TCP: "localhost:80"}, []string{"db has ended with exit code 4", "out of space"}},
		"the one that is asked ends well": {`
services:
  web: {image: IMAGE, command: [sleep, "600"]}
  db: {image: IMAGE, command: [sh, -c, "sleep 2; echo all done"]}
`, extensions.Probe{TCP: "localhost:5432", Service: "db"}, []string{"db has ended", "probe", "all done"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			b := s.open(t)
			probe := c.probe
			probe.Interval, probe.Timeout = extensions.Duration(300*time.Millisecond), extensions.Duration(10*time.Minute)
			spec := s.stack(t, c.file, exttest.With(func(sp *extensions.Spec) { sp.Readiness = &probe }))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			h, _, err := b.Provision(ctx, spec)
			s.tearDownAtEnd(t, spec.ID)
			for _, want := range c.want {
				if !extensions.IsKind(err, extensions.KindFailed) || !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, err)
				}
			}
			if h.IsZero() || ctx.Err() != nil {
				t.Errorf("handle %q, %v", h.Encode(), ctx.Err())
			}
		})
	}
}

func TestAWaitEndsWithAServiceThatCrashes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	probe := extensions.Probe{TCP: "localhost:80", Interval: extensions.Duration(300 * time.Millisecond),
		Timeout: extensions.Duration(time.Second)}
	spec := s.stack(t, `
services:
  web: {image: IMAGE, command: [sh, -c, "while [ ! -e /tmp/end ]; do sleep 0.2; done; echo no such table; exit 3"]}
`, exttest.With(func(sp *extensions.Spec) { sp.Readiness = &probe }))
	h, _, err := b.Provision(t.Context(), spec)
	s.tearDownAtEnd(t, spec.ID)
	must(t, err)
	docker(t, "exec", string(h.ID)+"-web-1", "touch", "/tmp/end")
	probe.Timeout = extensions.Duration(10 * time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err = b.WaitReady(ctx, spec, h)
	for _, want := range []string{"web has ended with exit code 3", "no such table"} {
		if !extensions.IsKind(err, extensions.KindFailed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	if ctx.Err() != nil {
		t.Error(ctx.Err())
	}
}

// The caller's time may be shorter than the probe's.
func TestAWaitThatEndsEarlyTellsTheServicesLastLines(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	probe := extensions.Probe{TCP: "localhost:80", Interval: extensions.Duration(3 * time.Second),
		Timeout: extensions.Duration(time.Second)}
	spec := s.stack(t, `
services:
  web: {image: IMAGE, command: [sh, -c, "echo no licence; exec sleep 300"]}
`, exttest.With(func(sp *extensions.Spec) { sp.Readiness = &probe }))
	h, _, err := b.Provision(t.Context(), spec)
	s.tearDownAtEnd(t, spec.ID)
	must(t, err)
	probe.Timeout = extensions.Duration(10 * time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err = b.WaitReady(ctx, spec, h); !extensions.IsKind(err, extensions.KindTimeout) || !strings.Contains(err.Error(), "no licence") {
		t.Errorf("%v", err)
	}
}

// The same where the create itself has less time than the probe would take.
func TestACreateThatEndsEarlyTellsTheServicesLastLines(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.stack(t, `
services:
  web: {image: IMAGE, command: [sh, -c, "echo no licence; exec sleep 300"]}
`, exttest.With(func(sp *extensions.Spec) {
		sp.Readiness = &extensions.Probe{TCP: "localhost:80", Interval: extensions.Duration(3 * time.Second),
			Timeout: extensions.Duration(10 * time.Minute)}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, o, err := b.Provision(ctx, spec)
	s.tearDownAtEnd(t, spec.ID)
	must(t, err)
	if o.Phase != extensions.PhaseProvisioning {
		t.Fatalf("it is %s: %s", o.Phase, o.Reason)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err = b.WaitReady(ctx, spec, h); !extensions.IsKind(err, extensions.KindTimeout) || !strings.Contains(err.Error(), "no licence") {
		t.Errorf("%v", err)
	}
}

// A service that runs and never answers is told with what it printed last: the
// stack is taken away, and its logs with it.
func TestAProbeThatNeverAnswersTellsTheServicesLastLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file  string
		probe extensions.Probe
		want  []string
	}{
		"nothing listens": {`
services:
  web: {image: IMAGE, command: [sh, -c, "echo config.yaml is missing >&2; echo waiting for it; exec sleep 300"]}
`, extensions.Probe{HTTP: "http://localhost:8080/health"}, []string{"http://localhost:8080/health", "web", "config.yaml is missing", "waiting for it"}},
		"another service": {`
services:
  web: {image: IMAGE, command: [sleep, "300"]}
  db: {image: IMAGE, command: [sh, -c, "echo replaying the journal; exec sleep 300"]}
`, extensions.Probe{TCP: "localhost:5432", Service: "db"}, []string{"localhost:5432", "db", "replaying the journal"}},
		"the command fails": {`
services:
  web: {image: IMAGE, command: [sh, -c, "echo no licence; exec sleep 300"]}
`, extensions.Probe{Command: []string{"sh", "-c", "echo not yet; exit 3"}}, []string{"exit code 3", "not yet", "no licence"}},
		"its target is another service": {`
services:
  web: {image: IMAGE, command: [sh, -c, "echo all is well here; exec sleep 300"]}
  db: {image: IMAGE, command: [sh, -c, "echo replaying the journal; exec sleep 300"]}
`, extensions.Probe{TCP: "db:5432"}, []string{"db:5432", "the last lines of db: replaying the journal"}},
		"nothing printed": {`
services:
  web: {image: IMAGE, command: [sleep, "300"]}
`, extensions.Probe{Command: []string{"false"}}, []string{"exit code 1", "web has printed nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			b := s.open(t)
			probe := c.probe
			probe.Interval = extensions.Duration(300 * time.Millisecond)
			if probe.Timeout == 0 {
				probe.Timeout = extensions.Duration(time.Second)
			}
			spec := s.stack(t, c.file, exttest.With(func(sp *extensions.Spec) { sp.Readiness = &probe }))
			h, o, err := b.Provision(t.Context(), spec)
			s.tearDownAtEnd(t, spec.ID)
			must(t, err)
			if o.Phase != extensions.PhaseProvisioning {
				t.Fatalf("it is %s: %s", o.Phase, o.Reason)
			}
			_, err = b.WaitReady(t.Context(), spec, h)
			if !extensions.IsKind(err, extensions.KindTimeout) {
				t.Fatalf("%s: %v", extensions.KindOf(err), err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, err)
				}
			}
			if remedy := extensions.RemedyOf(err); remedy == "" || strings.Contains(remedy, "look at the logs") {
				t.Errorf("the remedy is %q", remedy)
			}
		})
	}
}
