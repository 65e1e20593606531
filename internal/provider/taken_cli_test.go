package provider

import (
	"context"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

const nameIsTaken = "The name is taken"

// Where the apply succeeds, nobody is warned that it fails.
func TestANameThatIsFreeAtTheApplyIsNotToldAsTaken(t *testing.T) {
	t.Parallel()
	const body = "name = \"mine\"\nttl = \"1h\""
	plan := []string{"plan", "-out=p", "-no-color", "-input=false"}
	for name, x := range map[string]struct {
		before func(*cli)
		body   string
		args   []string
	}{
		"tainted":             {func(c *cli) { c.must("taint", "sandboxer_sandbox.a") }, sandboxHCL(body), plan},
		"tainted and changed": {func(c *cli) { c.must("taint", "sandboxer_sandbox.a") }, sandboxHCL(body + "\nenv = { A = \"1\" }"), plan},
		"tainted, unrefreshed": {func(c *cli) { c.must("taint", "sandboxer_sandbox.a") }, sandboxHCL(body),
			append(plan[:len(plan):len(plan)], "-refresh=false")},
		"replaced by address":   {func(*cli) {}, sandboxHCL(body), append(plan, "-replace=sandboxer_sandbox.a")},
		"replaced, unrefreshed": {func(*cli) {}, sandboxHCL(body), append(plan, "-replace=sandboxer_sandbox.a", "-refresh=false")},
		"replaced by a change":  {func(*cli) {}, sandboxHCL(body + "\ntriggers = { a = \"1\" }"), plan},
		"lost at the vendor": {func(c *cli) {
			c.b.script(vendor.Rule{Op: vendor.OpExec, Do: vendor.DoVanish, Times: 1})
			// whatever it answers, it is gone
			_, _ = c.b.engine().Exec(context.Background(), c.b.only().Receipt, engine.ExecRequest{Command: []string{"true"}})
		}, sandboxHCL(body), plan},
		"destroyed elsewhere": {func(c *cli) {
			if _, err := c.b.engine().Destroy(context.Background(), c.b.only().Receipt, engine.DestroyOptions{}); err != nil {
				c.t.Fatal(err)
			}
		}, sandboxHCL(body), plan},
		"a failed one": {func(c *cli) {
			c.b.script(vendor.Rule{Op: vendor.OpDelete, Do: vendor.DoUnauthorized, Times: 1})
			c.try(nil, "destroy", "-auto-approve")
			c.b.script()
		}, sandboxHCL(body), plan},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			c := newCLI(t, b)
			c.write(sandboxHCL(body))
			c.apply()
			x.before(c)
			c.write(x.body)
			if out := c.must(x.args...); says(out, nameIsTaken) || !says(out, "1 to add") {
				t.Errorf("the plan:\n%s", out)
			}
			b.script()
			if out := c.must("apply", "-no-color", "-input=false", "p"); says(out, nameIsTaken) {
				t.Errorf("the apply:\n%s", out)
			}
			c.planIsEmpty()
			c.destroy()
			c.nothingLeft()
		})
	}
}

// Where the name stays somebody else's, the plan tells, and the apply fails.
func TestANameThatStaysTakenIsToldInThePlan(t *testing.T) {
	t.Parallel()
	const body = "name = \"mine\"\nttl = \"1h\""
	second := "resource \"sandboxer_sandbox\" \"b\" {\n  profile = \"profile.stub\"\n  name = \"mine\"\n}\n"
	for name, x := range map[string]struct {
		before func(*cli)
		body   string
		other  bool // planned from another folder, with a state of its own
	}{
		"another state":              {func(*cli) {}, sandboxHCL(body), true},
		"lost by this state":         {func(c *cli) { c.must("state", "rm", "sandboxer_sandbox.a") }, sandboxHCL(body), false},
		"a second resource":          {func(*cli) {}, sandboxHCL(body) + second, false},
		"beside one that is changed": {func(*cli) {}, sandboxHCL("name = \"mine\"\nttl = \"2h\"") + second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			c := newCLI(t, b)
			c.write(sandboxHCL(body))
			c.apply()
			x.before(c)
			from := c
			if x.other {
				from = newCLI(t, b)
			}
			from.write(x.body)
			if out := from.must("plan", "-no-color", "-input=false"); !says(out, nameIsTaken) {
				t.Errorf("the plan:\n%s", out)
			}
			if out, code := from.try(nil, "apply", "-auto-approve", "-no-color", "-input=false"); code == 0 {
				t.Errorf("the apply succeeds:\n%s", out)
			}
		})
	}
}

// An apply that asks tells it before the question, also with an empty state.
func TestANameThatIsTakenIsToldBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL("name = \"mine\""))
	c.apply()
	other := newCLI(t, b)
	other.write(sandboxHCL("name = \"mine\""))
	cmd := other.command(nil, "apply", "-no-color")
	cmd.Stdin = strings.NewReader("no\n")
	if out, err := cmd.CombinedOutput(); err == nil || !says(string(out), nameIsTaken) || !says(string(out), "Apply cancelled") {
		t.Errorf("%v:\n%s", err, out)
	}
	c.destroy()
	c.nothingLeft()
}
