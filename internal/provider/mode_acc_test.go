package provider

import (
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// is demands what the only sandbox is at the vendor.
func (b *bed) is(want vendor.State) resource.TestCheckFunc {
	return func(*terraform.State) error {
		b.t.Helper()
		if objs, err := b.vendor().Objects(); err != nil || len(objs) != 1 || objs[0].State != want {
			b.t.Errorf("the vendor has %+v, %v, want one that is %s", objs, err, want)
		}
		return nil
	}
}

// sets changes the mode behind Terraform's back, as the command line does.
func (b *bed) sets(mode engine.Mode) {
	b.t.Helper()
	e := b.engine()
	s, err := e.Lookup(b.t.Context(), "", "acme/web", "one")
	if err == nil {
		_, err = e.SetMode(b.t.Context(), s.Receipt, mode, nil)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestASandboxIsPausedAndResumedInPlace(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	config := func(more string) string { return b.config(sandboxHCL("name = \"one\"\n" + more)) }
	unset, paused, running := config(""), config(`desired_mode = "paused"`), config(`desired_mode = "running"`)
	var id, later string
	update := action(plancheck.ResourceActionUpdate)
	b.run(
		resource.TestStep{Config: unset, Check: remember("id", &id)},
		resource.TestStep{Config: paused, ConfigPlanChecks: update, Check: resource.ComposeTestCheckFunc(b.is(vendor.StatePaused), remember("id", &later)),
			ConfigStateChecks: []statecheck.StateCheck{value("state", knownvalue.StringExact("ready")), value("expiry", knownvalue.StringExact("native"))}},
		resource.TestStep{Config: unset, Check: b.is(vendor.StatePaused)},
		resource.TestStep{Config: unset, PreConfig: func() { b.sets(engine.Running); b.sets(engine.Paused) }, PlanOnly: true},
		resource.TestStep{Config: running, ConfigPlanChecks: update, Check: b.is(vendor.StateRunning)},
		resource.TestStep{Config: running, PreConfig: func() { b.sets(engine.Paused) }, ConfigPlanChecks: update,
			Check: b.is(vendor.StateRunning)},
	)
	if id != later {
		t.Errorf("%s became %s", id, later)
	}
}

func TestASandboxIsCreatedPausedAndAMoveOfItsEndLeavesItSo(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL("name = \"one\"\nttl = \"1h\"\ndesired_mode = \"paused\""))
	longer := b.config(sandboxHCL("name = \"one\"\nttl = \"2h\"\ndesired_mode = \"paused\""))
	b.run(
		resource.TestStep{Config: cfg, Check: b.is(vendor.StatePaused)},
		resource.TestStep{Config: longer, ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: b.is(vendor.StatePaused)},
	)
}

// A failed create is replaced by Terraform. Where only the pause after it fails, the sandbox is whole: it stays, and the
// next apply pauses it.
func TestASandboxThatCouldNotBePausedIsPausedByTheNextApply(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL("name = \"one\"\ndesired_mode = \"paused\""))
	var id, later string
	update := action(plancheck.ResourceActionUpdate)
	b.script(vendor.Rule{Op: vendor.OpPause, Do: vendor.DoQuota, Times: 2})
	b.run(
		resource.TestStep{Config: cfg, Check: resource.ComposeTestCheckFunc(b.is(vendor.StateRunning), remember("id", &id)), ExpectNonEmptyPlan: true,
			ConfigStateChecks: []statecheck.StateCheck{value("state", knownvalue.StringExact("ready"))}},
		resource.TestStep{Config: cfg, ConfigPlanChecks: update, ExpectError: regexp.MustCompile("was not changed")},
		resource.TestStep{Config: cfg, ConfigPlanChecks: update, Check: resource.ComposeTestCheckFunc(b.is(vendor.StatePaused), remember("id", &later))},
	)
	if id != later {
		t.Errorf("%s became %s", id, later)
	}
}

func TestWhatHasEndedAndIsKeptHasNoModeToChange(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"running", "paused"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			cfg := b.config(sandboxHCL("name = \"one\"\non_expiry = \"keep\"\ndesired_mode = \"" + mode + "\""))
			b.run(
				resource.TestStep{Config: cfg},
				resource.TestStep{PreConfig: func() { b.expire(2 * time.Hour) }, Config: cfg, ConfigPlanChecks: empty(),
					ConfigStateChecks: []statecheck.StateCheck{value("state", knownvalue.StringExact("expired"))}},
			)
		})
	}
}

func TestAReplacementOfAPausedSandboxIsPausedToo(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	config := func(trigger string) string {
		return b.config(sandboxHCL("name = \"one\"\ndesired_mode = \"paused\"\ntriggers = { n = \"" + trigger + "\" }"))
	}
	b.run(
		resource.TestStep{Config: config("1")},
		resource.TestStep{Config: config("2"), ConfigPlanChecks: action(plancheck.ResourceActionReplace), Check: b.is(vendor.StatePaused)},
	)
}
