package composessh

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

func settling(d time.Duration) exttest.Option {
	return exttest.With(func(sp *extensions.Spec) { sp.Settle = extensions.Duration(d) })
}

func TestAServiceThatEndsSoonAfterItsStartIsNotReady(t *testing.T) {
	t.Parallel()
	const crash = `
services:
  web: {image: IMAGE, command: [sleep, "600"]}
  db: {image: IMAGE, command: [sh, -c, "sleep 2; echo no such table; exit 42"]}
`
	answers := extensions.Probe{Command: []string{"true"}, Interval: extensions.Duration(300 * time.Millisecond),
		Timeout: extensions.Duration(time.Minute)}
	for name, opts := range map[string][]exttest.Option{
		"without a probe":      nil,
		"a probe that answers": {exttest.With(func(sp *extensions.Spec) { sp.Readiness = &answers })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			b := s.open(t)
			spec := s.stack(t, crash, append(opts, settling(extensions.SettleDefault))...)
			h, _, err := b.Provision(t.Context(), spec)
			s.tearDownAtEnd(t, spec.ID)
			for _, want := range []string{"db has ended with exit code 42", "no such table"} {
				if !extensions.IsKind(err, extensions.KindFailed) || !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, err)
				}
			}
			if o := s.observe(t, b, h); o.Phase != extensions.PhaseFailed {
				t.Errorf("it is %s: %s", o.Phase, o.Reason)
			}
		})
	}
}

// What is made ready in two steps settles in the second one.
func TestAServiceThatEndsBeforeTheWaitIsNotReady(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.stack(t, `
services:
  web: {image: IMAGE, command: [sleep, "600"]}
  db: {image: IMAGE, command: [sh, -c, "while [ ! -e /tmp/end ]; do sleep 0.2; done; exit 42"], ports: ["5432"]}
`, settling(time.Minute), exttest.With(func(sp *extensions.Spec) { sp.ProbeLater = true }))
	h, o, err := b.Provision(t.Context(), spec)
	s.tearDownAtEnd(t, spec.ID)
	if err != nil || o.Phase != extensions.PhaseReady {
		t.Fatalf("%s, %v", o.Phase, err)
	}
	docker(t, "exec", string(h.ID)+"-db-1", "touch", "/tmp/end")
	if _, err = b.WaitReady(t.Context(), spec, h); !extensions.IsKind(err, extensions.KindFailed) ||
		!strings.Contains(err.Error(), "exit code 42") {
		t.Errorf("%v", err)
	}
}

// Without one that must settle, nothing waits for the minute.
func TestWhatHealthChecksJudgeDoesNotSettle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.stack(t, `
services:
  web: {image: IMAGE, command: [sleep, "600"], healthcheck: {test: ["CMD", "true"], interval: 300ms}, depends_on: {setup: {condition: service_completed_successfully}}}
  setup: {image: IMAGE, command: ["true"]}
`, settling(time.Minute))
	s.provision(t, b, spec)
	begun, err := time.Parse(time.RFC3339Nano, docker(t, "inspect", "--format", "{{.State.StartedAt}}", string(spec.ID)+"-web-1"))
	must(t, err)
	if ran := time.Since(begun); ran >= time.Minute {
		t.Errorf("ready %s after it started", ran)
	}
}

// An image starts nothing of its own, so that a profile without services never waits.
func TestAnImageDoesNotSettle(t *testing.T) {
	t.Parallel()
	with := func(c *extensions.Containers) extensions.Spec {
		return extensions.Spec{Containers: c, Settle: extensions.Duration(time.Minute)}
	}
	for name, c := range map[string]struct {
		spec extensions.Spec
		want time.Duration
	}{
		"image":                   {with(nil), keptTime},
		"an agent that waits":     {with(&extensions.Containers{}), keptTime},
		"an agent with a command": {with(&extensions.Containers{Agent: extensions.Container{Command: []string{"x"}}}), time.Minute},
		"services":                {with(&extensions.Containers{Services: map[string]extensions.Container{"db": {}}}), time.Minute},
		"a stack":                 {extensions.Spec{Compose: &extensions.Compose{}, Settle: extensions.Duration(time.Minute)}, time.Minute},
		"a stack, switched off":   {extensions.Spec{Compose: &extensions.Compose{}}, 0},
	} {
		if got := settleTime(c.spec); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// By the start that Docker tells, on hosts whose date knows fractions and on
// those where it does not, whatever happened to the clock.
func TestTheTimeToSettleIsReckonedFromTheLastStart(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	inShells(t, []string{"list", "look", "await"}, `
docker() { printf '%s\n' $starts; }
date() {
	case "$*" in
	+%s.%N) echo "$clock" ;;
	*) command date "$@" ;;
	esac
}
left() {
	starts=$1 clock=$2 settle=400 uptime=100000 unjudged='a b'
	find_settled_at
	echo $((settled_at - uptime))
}
left 2026-11-22T20:00:00.5Z 1795377601.250000000
left '2026-11-22T20:00:00.5Z 2026-11-22T19:59:59.123456789Z' 1795377601.250000000
left '2026-11-22T20:00:00.12Z 2026-11-22T20:00:00.123Z 2026-11-22T20:00:00Z' 1795377603.090000000
left 2026-11-22T20:00:00.08Z 1795377600.07
left 2026-11-22T20:00:00.5Z 1795377602.%N
left 2026-11-22T20:00:00.5Z 1795377900.0
left 2026-11-22T20:00:09Z 1795377600.0
left nonsense 1795377601.0
left '' 1795377601.0
judged() {
	looked_at=$uptime settle=$1 unjudged=$2 settled_at= starts=2026-11-22T20:00:00Z clock=$3 verdict=ready
	is_settled
	echo "$verdict"
}
judged 400 a 1795377603.9
judged 400 a 1795377604.0
judged 0 a 1795377600.0
judged 400 '' 1795377600.0
`, "325\n325\n103\n400\n299\n-29550\n400\n400\n400\nwait\nready\nready\nready")
}
