//go:build linux

package local

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func modeOf(t *testing.T, b *Backend, h extensions.Handle, spec extensions.Spec, pause bool) extensions.Observation {
	t.Helper()
	var o extensions.Observation
	var err error
	if pause {
		o, err = b.Pause(t.Context(), h)
	} else {
		o, err = b.Resume(t.Context(), h, spec.Deadline)
	}
	must(t, err)
	return o
}

// Programs that continue each other all the time count a tenth of a second each: a pause of two seconds adds next
// to nothing, with walls and without.
func TestNothingInsideUndoesAPause(t *testing.T) {
	t.Parallel()
	needSandboxes(t)
	for name, level := range map[string]extensions.Isolation{"walls": extensions.IsolationProcess, "no walls": extensions.IsolationNone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
			spec.Isolation = level
			if level == extensions.IsolationNone {
				spec.Network.Default = "allow"
			}
			h := provision(t, b, spec)
			shell(t, b, h, `cat >run.sh <<'X'
peers=""
for n in 1 2 3; do
	(while :; do printf x >>count; sleep 0.1; done) &
	peers="$peers $!"
done
echo $peers >peers
while :; do for p in $peers; do kill -CONT $p; done; done
X
nohup sh run.sh >/dev/null 2>&1 &
nohup sh -c 'while ! test -s peers; do sleep 0.1; done; while :; do kill -CONT $(cat peers) $PPID; done' >/dev/null 2>&1 &
while ! test -s count; do sleep 0.1; done`)
			count := func() int { return len(shell(t, b, h, "cat count").Stdout) }
			before := count()
			modeOf(t, b, h, spec, true)
			time.Sleep(2 * time.Second)
			modeOf(t, b, h, spec, false)
			after := count()
			if after-before > 30 { // two seconds of running add sixty
				t.Errorf("over a pause of two seconds the counter went from %d to %d", before, after)
			}
			time.Sleep(500 * time.Millisecond)
			if count() <= after {
				t.Errorf("resumed, the counter stays at %d", after)
			}
		})
	}
}

// What its owner had stopped stays stopped over a pause and a snapshot.
func TestAResumeContinuesOnlyWhatThePauseStopped(t *testing.T) {
	t.Parallel()
	needSandboxes(t)
	b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
	h := provision(t, b, spec)
	pid := strings.TrimSpace(string(shell(t, b, h, "nohup sleep 300 >/dev/null 2>&1 & kill -STOP $!; echo $!").Stdout))
	modeOf(t, b, h, spec, true)
	modeOf(t, b, h, spec, false)
	if state := string(shell(t, b, h, "grep State /proc/"+pid+"/status").Stdout); !strings.Contains(state, "T") {
		t.Errorf("it is %s", state)
	}
}

func TestAPausedSandboxKeepsNoTimeOfItsMeter(t *testing.T) {
	t.Parallel()
	needSandboxes(t)
	b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
	h := provision(t, b, spec)
	began := modeOf(t, b, h, spec, true).Since
	time.Sleep(300 * time.Millisecond)
	paused := modeOf(t, b, h, spec, false).Since.Sub(began)
	u, err := b.Usage(t.Context(), h)
	if err != nil || u.Paused != paused || u.Running > time.Since(u.StartedAt)-paused {
		t.Errorf("running %s, paused %s, want %s, %v", u.Running, u.Paused, paused, err)
	}
	r, err := b.Teardown(t.Context(), h)
	if err != nil || r.Usage == nil || r.Usage.Paused != paused {
		t.Errorf("the teardown tells %+v, %v", r.Usage, err)
	}
}
