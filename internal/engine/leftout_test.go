package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func TestWhatAnExtensionLeavesOutIsOneWarningOfThePlan(t *testing.T) {
	t.Parallel()
	const summary = "Parts of the stack have no effect"
	leftOut := func(stack string) (out []engine.Notice) {
		b := newHosts(t, stackFiles(stack))
		planned, err := b.Plan(context.Background(), engine.Request{Profile: "profile.child", Name: "one", Hosts: []string{onSSH(false).Ref()}})
		if err != nil {
			t.Fatal(told(err))
		}
		for _, n := range planned.Notices {
			if n.Summary == summary {
				out = append(out, n)
			}
		}
		return out
	}
	got := leftOut("services: { web: { restart: always } }\n")
	if len(got) != 1 || !strings.Contains(got[0].Detail, "restart is left out, of web\nports are shut") {
		t.Errorf("%+v", got)
	}
	if got := leftOut("services: {}\n"); len(got) != 0 {
		t.Errorf("nothing is left out: %+v", got)
	}
}

// What a plan has told is not told again, and what it could not see is.
func TestWhatIsLeftOutIsToldOnce(t *testing.T) {
	t.Parallel()
	b := newHosts(t, stackFiles("services: { web: { restart: always } }\n"))
	ctx := context.Background()
	s, err := b.Create(ctx, engine.Request{Profile: "profile.child", Name: "one", Hosts: []string{onSSH(false).Ref()}}, nil,
		func(n engine.Notice) {
			if strings.Contains(n.Detail, "restart") {
				t.Errorf("told again: %+v", n)
			}
		})
	if err != nil {
		t.Fatal(told(err))
	}
	b.end(s)
}
