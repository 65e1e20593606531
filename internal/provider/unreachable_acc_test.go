package provider

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// What an error says has to be done is done here, step by step.
func TestForgettingWhatIsOutOfReachGoesAsTheErrorSays(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL(`name = "away"`))
	c.apply()
	b.script(vendor.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
	defer b.script()
	destroy := []string{"destroy", "-auto-approve", "-no-color", "-input=false"}

	out, code := c.try(nil, destroy...)
	if code == 0 || !says(out, "-refresh=false", `on_unreachable_destroy = "forget"`, "terraform apply -refresh=false") {
		t.Fatalf("a destroy that asks first: exit %d\n%s", code, out)
	}
	out, code = c.try(nil, append(destroy, "-refresh=false")...)
	steps := regexp.MustCompile(`(?m)^\W*[123]\. (.*)$`).FindAllStringSubmatch(out, -1)
	if code == 0 || len(steps) != 3 {
		t.Fatalf("the destroy tells no steps: exit %d\n%s", code, out)
	}
	c.write(sandboxHCL("name = \"away\"\non_unreachable_destroy = \"forget\""))
	if out, code = c.try(nil, append(destroy, "-refresh=false")...); code == 0 {
		t.Fatalf("an argument that was not applied counts:\n%s", out)
	}
	for _, step := range steps[1:] {
		words := strings.Fields(step[1])
		if words[0] != "terraform" {
			t.Fatalf("no command: %q", step[1])
		}
		out = c.must(append(words[1:], "-auto-approve", "-no-color", "-input=false")...)
	}
	if !says(out, "forgotten", "sandboxer sweep") {
		t.Errorf("the destroy tells nothing of it:\n%s", out)
	}
	b.script()
	report, err := b.engine().Sweep(context.Background(), false, nil)
	if err != nil || len(report.Ended) != 1 {
		t.Errorf("the sweep: %+v, %v", report, err)
	}
	c.nothingLeft()
}

func says(out string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(strings.ToLower(flat(out)), strings.ToLower(p)) {
			return false
		}
	}
	return true
}

// What only Terraform has to know of a host is recorded without asking it.
func TestForceDestroyIsAppliedWhileTheHostIsAway(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	s := hosttest.SSHD(t)
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sshHost(s, ""))
	c.apply()
	s.Stop()
	c.write(sshHost(s, `region = "eu"`))
	if out, code := c.try(nil, "apply", "-auto-approve", "-no-color", "-input=false"); code == 0 {
		t.Fatalf("a change of the host itself was recorded unseen:\n%s", out)
	}
	c.write(sshHost(s, "force_destroy = true"))
	c.apply()
	if forced := c.stateOf("sandboxer_host.far", "force_destroy"); forced != true {
		t.Errorf("force_destroy is %v in the state", forced)
	}
	c.destroy()
}

func TestAFailureIsToldOnceWithItsReason(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL(`name = "ill"`))
	c.apply()
	id := string(b.only().ID)
	if out := c.must("plan", "-no-color", "-input=false"); says(out, "has failed") {
		t.Fatalf("a healthy one has failed:\n%s", out)
	}
	if err := b.vendor().Fail(id, "the disk broke"); err != nil {
		t.Fatal(err)
	}
	for _, read := range [][]string{{"plan"}, {"apply", "-refresh-only", "-auto-approve"}} {
		out := c.must(append(read, "-no-color", "-input=false")...)
		if !says(out, `warning: sandbox "ill" (`+id+`) has failed`, "the disk broke", "sandboxer sandbox logs "+id,
			"the next apply replaces it") || strings.Count(out, "Warning: Sandbox") != 1 {
			t.Errorf("terraform %v does not tell of the failure, and once:\n%s", read, out)
		}
	}
	out := c.must("plan", "-no-color", "-input=false")
	if says(out, "has failed") || !says(out, "is failed", "must be replaced") || strings.Count(out, "Warning: Sandbox") != 1 {
		t.Errorf("the state says failed already, so the plan replaces and no more:\n%s", out)
	}
	c.apply()
	c.destroy()
	c.nothingLeft()
}
