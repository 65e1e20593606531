package provider

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestTheInputsExampleIsApplied(t *testing.T) {
	t.Parallel()
	c := example(t, "inputs")
	c.apply()
	c.planIsEmpty()
	e := c.owned()
	list, err := e.List(context.Background(), false)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	res, err := e.Exec(context.Background(), list[0].Receipt,
		engine.ExecRequest{Command: []string{"cat", "greeting.txt", ".sandboxer/instructions.md"}})
	const said = `it's $HOME; "{{input.times}}"`
	if want := said + "\n" + said + "\ngreeting.txt says " + said + ", 2 times."; err != nil || strings.TrimSpace(string(res.Stdout)) != want {
		t.Errorf("inside it says %q (%v), want %q", res.Stdout, err, want)
	}
	c.destroy()
	c.ownsNothing()
}

// An input that is not known yet leaves the plan possible; the apply puts it in
// and polices it.
func TestAnInputThatIsNotKnownYetIsPutInByTheApply(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	c := newCLI(t, b)
	b.profile("profile.said", "extends: profile.quickstart\ninputs: { said: { type: string, required: true, pattern: \"(?s).{1,20}\" } "+
		"}\ntoolchain: { env: { SAID: \"{{input.said}}\" } }\n")
	write := func(said string) {
		c.write("resource \"terraform_data\" \"v\" { input = " + said +
			" }\nresource \"sandboxer_sandbox\" \"s\" {\n  profile = \"profile.said\"\n  name = \"said\"\n  inputs = { said = " +
			"terraform_data.v.output }\n}\n")
	}
	write(`"two\nlines"`)
	c.apply()
	c.planIsEmpty()
	res, err := b.engine().Exec(context.Background(), b.only().Receipt, engine.ExecRequest{Shell: `printf %s "$SAID"`})
	if err != nil || string(res.Stdout) != "two\nlines" {
		t.Errorf("inside it is %q (%v)", res.Stdout, err)
	}
	write(`"` + strings.Repeat("x", 21) + `"`)
	if out, code := c.try(nil, "apply", "-auto-approve", "-no-color"); code == 0 || !strings.Contains(out, "does not match the pattern") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	c.destroy()
	c.nothingLeft()
}

func TestWhatAnInputMakesOfAProfileIsRefusedInThePlan(t *testing.T) {
	t.Parallel()
	host := strconv.Quote(engine.Host{Name: "h",
		SSH: &extensions.SSH{Address: "127.0.0.1", Port: 1, User: "u", KnownHosts: "/dev/null"}}.Ref())
	for name, c := range map[string]struct{ profile, inputs, want string }{
		"an image": {"image: { pull: \"{{input.v}}\" }", `"a b"`,
			`image.pull of profile.p@1.0.0, filled from inputs.v: "a b" is not an image reference`},
		"a path": {"compose: { file: \"{{input.v}}\" }", `"../x.yaml"`, `leaves its folder`},
		"a mount": {"compose: { file: compose.yaml, bundle: stack, variables: { FROM: \"{{input.v}}\" } }", `"/etc"`,
			`services.web.volumes[0]`},
		"none":           {"image: { pull: \"{{input.v}}\" }", `null`, `image.pull uses the input v`},
		"a place":        {"extension: \"{{input.v}}\"", `"ext.local"`, `extension cannot hold an input`},
		"what may leave": {"network: { egress: [\"{{input.v}}\"] }", `"pypi.org:443"`, `network.egress[0] cannot hold an input`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.profile("profile.p", "extends: profile.base\nisolation: { level: container }\n"+c.profile+"\ninputs: { v: { type: string } }\n")
			b.write("catalog/profiles/stack/compose.yaml", "services: { web: { image: x, volumes: [\"${FROM}:/data\"] } }\n")
			cl := newCLI(t, b)
			cl.write("resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"profile.p\"\n  hosts = [" + host + "]\n  inputs = { v = " + c.inputs +
				" }\n}\n")
			refused(t, cl, c.want)
		})
	}
}

// What nothing uses is told in the plan, as what was given has no effect.
func TestAnInputThatReachesNothingIsToldInThePlan(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	b := newBed(t)
	c := newCLI(t, b)
	c.write("resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"profile.stub\"\n  inputs = { count = 3 }\n}\n")
	if out := c.must("plan", "-no-color", "-input=false"); !strings.Contains(out, "An input has no effect") ||
		!strings.Contains(out, "{{input.count}}") {
		t.Errorf("the plan says nothing of it:\n%s", out)
	}
}
