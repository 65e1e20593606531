package failpointtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
)

// childEnv makes the test binary a program that passes points.
const childEnv = "FAILPOINT_TEST_CHILD"

func TestMain(m *testing.M) {
	points = append(points, "test.one", "test.two")
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	os.Exit(m.Run())
}

func child() int {
	Arm()
	for range 3 {
		for _, p := range []string{"test.one", "test.two"} {
			if err := failpoint.Hit(context.Background(), p); err != nil {
				_, _ = os.Stdout.WriteString(p + " failed\n")
				continue
			}
			_, _ = os.Stdout.WriteString(p + "\n")
		}
	}
	return 0
}

func TestEnvironmentArmsAProcess(t *testing.T) {
	t.Parallel()
	const all = "test.one test.two test.one test.two test.one test.two"
	for name, c := range map[string]struct {
		env, want string
		killed    bool
	}{
		"disarmed":       {"", all, false},
		"error":          {"test.two:error", strings.ReplaceAll(all, "test.two", "test.two failed"), false},
		"error at third": {"test.one@3:error", "test.one test.two test.one test.two test.one failed test.two", false},
		"kill":           {"test.two:kill", "test.one", true},
		"kill at second": {"test.one@2:kill", "test.one test.two", true},
		"several":        {"test.one@1:error,test.two@2:kill", "test.one failed test.two test.one", true},
	} {
		out, err := start(t, c.env)
		if got := strings.Join(strings.Fields(out), " "); got != c.want {
			t.Errorf("%s: printed %q, want %q", name, got, c.want)
		}
		var exit *exec.ExitError
		if killed := errors.As(err, &exit) && !exit.Exited(); killed != c.killed || err != nil && !c.killed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAMistakeInTheEnvironmentIsLoud(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"test.one", "test.one:explode", "test.one@x:kill", "test.one@0:kill", "test.onne:kill", "test.one:error,"} {
		if out, err := start(t, env); err == nil || !strings.Contains(out, Env) {
			t.Errorf("%q was taken: %v\n%s", env, err, out)
		}
	}
}

func start(t *testing.T, env string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"=1", Env+"="+env)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestInjectArmsOneContextAndOnePoint(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	ctx := Inject(context.Background(), "test.one", func() error { return mine })
	if err := failpoint.Hit(ctx, "test.one"); !errors.Is(err, mine) {
		t.Errorf("got %v", err)
	}
	if err := failpoint.Hit(context.WithoutCancel(ctx), "test.one"); !errors.Is(err, mine) {
		t.Errorf("lost with the cancellation: %v", err)
	}
	if err := errors.Join(failpoint.Hit(ctx, "test.two"), failpoint.Hit(context.Background(), "test.one")); err != nil {
		t.Errorf("others are armed too: %v", err)
	}
}

func TestNamesAreThoseOfThePrefix(t *testing.T) {
	t.Parallel()
	if got := Names("test."); !slices.Equal(got, []string{"test.one", "test.two"}) {
		t.Errorf("%q", got)
	}
}

func TestAPointThatIsNotListedIsLoud(t *testing.T) {
	t.Parallel()
	ctx := Inject(context.Background(), "test.one", func() error { return nil })
	for what, f := range map[string]func(){
		"passed":   func() { _ = failpoint.Hit(ctx, "test.onne") },
		"injected": func() { Inject(ctx, "test.onne", func() error { return nil }) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nothing said so", what)
				}
			}()
			f()
		}()
	}
}
