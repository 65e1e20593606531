package provider

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// forksHCL is a source, and five forks of what from says.
func forksHCL(profile, source, from string) string {
	return fmt.Sprintf(`
resource "sandboxer_sandbox" "source" {
  profile = %[1]q
  name    = "source"
  ttl     = "30m"
  %[2]s
}
resource "sandboxer_sandbox" "fork" {
  count        = 5
  profile      = %[1]q
  name         = "fork-${count.index}"
  ttl          = "20m"
  secrets_wo   = { TOKEN = "own-${count.index}" }
  from_sandbox = %[3]s
}
`, profile, source, from)
}

// warned reports a warning beside Terraform's own of the override that tests use.
func warned(out string) bool { return strings.Count(out, "Warning:") > 1 }

const ofSource = "sandboxer_sandbox.source.id"

// One apply makes a source and its forks; another one replaces all of them with the source; the source alone goes, and
// its forks stay as they are.
func TestForksAreMadeReplacedAndOutliveTheirSource(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	b := newBed(t)
	c := newCLI(t, b)
	c.write(forksHCL("profile.stub", `triggers = { v = "1" }`, ofSource))
	plan := c.must("plan", "-no-color", "-input=false")
	if warned(plan) || strings.Count(strings.Join(strings.Fields(plan), " "), "+ estimate = (known after apply)") != 5 {
		t.Errorf("the first plan:\n%s", plan)
	}
	if out := c.apply(); !strings.Contains(out, "6 added, 0 changed, 0 destroyed") || warned(out) {
		t.Errorf("the first apply:\n%s", out)
	}
	c.planIsEmpty()
	first, own := c.stateOf("sandboxer_sandbox.source", "id"), c.stateOf("sandboxer_sandbox.fork[3]", "estimate")
	if from := c.stateOf("sandboxer_sandbox.fork[3]", "from_sandbox"); from != first || own == nil {
		t.Errorf("the fork is of %v, not of %v, with the estimate %v", from, first, own)
	}
	b.inside("fork-3", `test "$TOKEN" = own-3`)

	c.write(forksHCL("profile.stub", `triggers = { v = "2" }`, ofSource))
	// OpenTofu says twice what forces it.
	unknown := regexp.MustCompile(`"` + first.(string) + `"( # forces replacement)? -> \(known after apply\) # forces replacement`)
	if out := c.apply(); !strings.Contains(out, "6 added, 0 changed, 6 destroyed") || len(unknown.FindAllString(out, -1)) != 5 || warned(out) {
		t.Errorf("the source is replaced:\n%s", out)
	}
	c.planIsEmpty()

	second := c.stateOf("sandboxer_sandbox.source", "id").(string)
	alone := func(from string) string {
		_, forks, _ := strings.Cut(forksHCL("profile.stub", "", from), "resource \"sandboxer_sandbox\" \"fork\"")
		return "resource \"sandboxer_sandbox\" \"fork\"" + forks
	}
	c.write(alone(`"` + second + `"`))
	if out := c.apply(); !strings.Contains(out, "0 added, 0 changed, 1 destroyed") || warned(out) {
		t.Errorf("the source goes alone:\n%s", out)
	}
	for _, from := range []string{`"` + second + `"`, "null"} { // what is no longer there, and no longer said
		c.write(alone(from))
		c.planIsEmpty()
		if out := c.must("plan", "-no-color", "-input=false"); warned(out) {
			t.Errorf("a plan without the source:\n%s", out)
		}
		if got := c.stateOf("sandboxer_sandbox.fork[0]", "from_sandbox"); got != second {
			t.Errorf("the origin is %v, want %s", got, second)
		}
	}
	c.write(strings.Replace(alone("null"), `"20m"`, `"25m"`, 1)) // a change in place needs no origin
	if out := c.apply(); !strings.Contains(out, "0 added, 5 changed, 0 destroyed") || warned(out) {
		t.Errorf("the forks' ttl changes:\n%s", out)
	}
	c.planIsEmpty()
	c.destroy()
}

func TestForksOfALocalSandboxHaveItsFilesAndAreImported(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	c := newCLI(t, b)
	c.write(strings.Replace(forksHCL("profile.quickstart", "", ofSource), "= 5", "= 0", 1))
	c.apply()
	b.inside("source", "printf shared >f; printf tool >$HOME/tool")
	c.write(forksHCL("profile.quickstart", "", ofSource))
	if out := c.apply("-parallelism=10"); !strings.Contains(out, "5 added, 0 changed, 0 destroyed") {
		t.Error(out)
	}
	b.inside("source", "printf later >>f")
	for i := range 5 {
		b.inside(fmt.Sprint("fork-", i), fmt.Sprintf(`test "$(cat f $HOME/tool)" = sharedtool && test "$TOKEN" = own-%d && printf x >>f`, i))
	}
	b.inside("source", `test "$(cat f)" = sharedlater`)
	c.planIsEmpty()

	// An import brings the origin back, which is no difference, there or gone.
	id := c.stateOf("sandboxer_sandbox.fork[0]", "id").(string)
	c.must("state", "rm", "-no-color", "sandboxer_sandbox.fork[0]")
	c.must("import", "-no-color", "-input=false", "sandboxer_sandbox.fork[0]", id)
	if from, source := c.stateOf("sandboxer_sandbox.fork[0]", "from_sandbox"), c.stateOf("sandboxer_sandbox.source", "id"); from != source {
		t.Errorf("imported as a fork of %v, not of %v", from, source)
	}
	b.ends("source")
	for _, name := range []string{"fork-0", "fork-1"} {
		b.inside(name, `test "$(cat f)" = sharedx`)
	}
	c.must("state", "rm", "-no-color", "sandboxer_sandbox.source")
	_, forks, _ := strings.Cut(forksHCL("profile.quickstart", "", "null"), "resource \"sandboxer_sandbox\" \"fork\"")
	c.write("resource \"sandboxer_sandbox\" \"fork\"" + forks)
	c.must("state", "rm", "-no-color", "sandboxer_sandbox.fork[0]")
	c.must("import", "-no-color", "-input=false", "sandboxer_sandbox.fork[0]", id)
	c.apply() // what an import cannot know
	c.planIsEmpty()
	c.destroy()
}

// ends destroys the live sandbox of that name behind Terraform's back.
func (b *bed) ends(name string) {
	b.t.Helper()
	e := b.engine()
	s, err := e.Lookup(b.t.Context(), "", "acme/web", name)
	if err == nil {
		_, err = e.Destroy(b.t.Context(), s.Receipt, engine.DestroyOptions{})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestAForkThatCannotBeIsRefusedInThePlan(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	b := newBed(t)
	b.profile("profile.other", "extends: profile.stub\n")
	c := newCLI(t, b)
	source := sandboxHCL(`name = "source"` + "\n env = { A = \"1\" }")
	c.write(source)
	c.apply()
	fork := func(body string) string {
		return source + "resource \"sandboxer_sandbox\" \"fork\" {\n  name = \"fork\"\n  from_sandbox = sandboxer_sandbox.a.id\n" + body + "\n}\n"
	}
	for body, want := range map[string]string{
		"profile = \"profile.other\"\n env = { A = \"1\" }": "differs from sandbox",
		"profile = \"profile.stub\"\n env = { A = \"2\" }":  "in env",
		"profile = \"profile.stub\"":                        "in env",
	} {
		c.write(fork(body))
		out, code := c.try(nil, "plan", "-no-color", "-input=false")
		flat := strings.Join(strings.Fields(strings.ReplaceAll(out, "│", " ")), " ")
		if code == 0 || !strings.Contains(flat, want) || !strings.Contains(flat, "What to do:") {
			t.Errorf("exit %d, want an error with %q:\n%s", code, want, out)
		}
	}
	c.write(fork("profile = \"profile.stub\"\n env = { A = \"1\" }"))
	if out := c.apply(); !strings.Contains(out, "1 added, 0 changed, 0 destroyed") {
		t.Error(out)
	}
	// A value that is known after the apply is no difference in the plan.
	c.write(fork("profile = \"profile.stub\"\n env = { A = terraform_data.one.output }") + "resource \"terraform_data\" \"one\" {\n  input = \"1\"\n}\n")
	c.apply()
	c.destroy()
}
