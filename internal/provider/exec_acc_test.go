package provider

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// execHCL is a command in the sandbox of sandboxHCL.
func execHCL(body string) string {
	return "resource \"sandboxer_exec\" \"e\" {\n  sandbox_id = sandboxer_sandbox.a.id\n" + body + "\n}\n"
}

const execAddr = "sandboxer_exec.e"

func TestACommandRunsAtCreateAndWhenItChanges(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	one := sandboxHCL("name = \"one\"")
	const run = "shell = \"echo $N >>ran\"\nenv = { N = \"1\" }\n"
	var first any
	for i, step := range []struct {
		body string
		ran  string
		same bool
	}{
		{run, "1 ", false},
		{run + "triggers = { v = \"1\" }", "1 1 ", false},
		{run + "triggers = { v = \"1\" }\ntimeout = \"1m\"", "1 1 ", true},
		{run + "triggers = { v = \"1\" }\nexpected_exit_codes = [0, 3]", "1 1 ", true},
		{run + "triggers = { v = \"1\" }\nexpected_exit_codes = [0, 3]\nsecrets_wo = { S = \"x\" }\nsecrets_wo_version = 1", "1 1 1 ", false},
		{replaced(run, `N = "1"`, `N = "2"`), "1 1 1 2 ", false},
		{"command = [\"sh\", \"-c\", \"echo \\\"$1\\\" >>ran\", \"sh\", \"a  $b\"]", "1 1 1 2 a  $b ", false},
	} {
		c.write(one + execHCL(step.body))
		if out := c.apply(); i > 0 && strings.Contains(out, "must be replaced") == step.same {
			t.Errorf("step %d: replaced is not %v:\n%s", i, !step.same, out)
		}
		c.planIsEmpty()
		if ran := strings.ReplaceAll(b.inside("one", "cat ran"), "\n", " "); ran != step.ran {
			t.Errorf("step %d: it ran %q, want %q", i, ran, step.ran)
		}
		id := c.stateOf(execAddr, "id")
		if code, _ := c.stateOf(execAddr, "exit_code").(float64); code != 0 || (id == first) != step.same {
			t.Errorf("step %d: id %v after %v, exit code %v", i, id, first, code)
		}
		first = id
	}
	if c.stateOf(execAddr, "stdout") != nil || c.stateOf(execAddr, "duration_ms") == nil {
		t.Error("the state keeps output that nobody asked for, or no duration")
	}
	// Another sandbox is another place to run it.
	c.write(sandboxHCL("name = \"one\"\ntriggers = { v = \"2\" }") + execHCL(run))
	c.apply()
	if ran := b.inside("one", "cat ran"); ran != "1\n" {
		t.Errorf("in the new sandbox it ran %q", ran)
	}
	c.destroy()
	c.nothingLeft()
}

func TestAnUnexpectedExitCodeFailsTheApplyAndRunsAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL("name = \"one\"") + execHCL(
		"shell = \"test -e tried || { touch tried; echo the $KIND cause >&2; exit 3; }\"\nsecrets_wo = { KIND = \"hush-hush\" }"))
	out, code := c.try(nil, "apply", "-auto-approve", "-no-color")
	if code == 0 || !says(out, "exit code 3", "the [redacted] cause", "a process inside failed") || says(out, "hush-hush") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if got, _ := c.stateOf(execAddr, "exit_code").(float64); got != 3 {
		t.Errorf("the state has exit code %v", got)
	}
	if out := c.must("show", "-no-color"); !strings.Contains(out, "(tainted)") {
		t.Errorf("it counts as done:\n%s", out)
	}
	c.apply()
	c.planIsEmpty()
	raw, err := os.ReadFile(filepath.Join(c.dir, "terraform.tfstate"))
	if err != nil || strings.Contains(string(raw), "hush-hush") || strings.Contains(string(raw), "the cause") {
		t.Errorf("the state has what it must not (%v):\n%s", err, raw)
	}
	c.destroy()
	c.nothingLeft()
}

func TestACommandThatTakesTooLongIsToldAsThat(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL("name = \"one\"") + execHCL("shell = \"echo begun; sleep 600\"\ntimeout = \"500ms\""))
	out, code := c.try(nil, "apply", "-auto-approve", "-no-color")
	if code == 0 || !says(out, "it took too long", "begun", "raise its timeout") || says(out, "exit code") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if c.stateOf(execAddr, "exit_code") != nil {
		t.Error("a command that did not end has an exit code")
	}
	c.destroy()
	c.nothingLeft()
}

// A command that nobody heard of may have run: that is said, and the next apply runs it again.
func TestACommandWhoseOutcomeIsUnknownIsToldAsThat(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	one := sandboxHCL("name = \"one\"")
	c.write(one)
	c.apply()
	c.write(one + execHCL("shell = \"echo x >>ran\""))
	b.script(vendor.Rule{Op: vendor.OpExec, Do: vendor.DoLoseAnswer, Times: 1})
	out, code := c.try(nil, "apply", "-auto-approve", "-no-color")
	if code == 0 || !says(out, "the outcome is not known yet", "it is unknown whether") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	b.script(vendor.Rule{Op: vendor.OpExec, Do: vendor.DoUnreachable, Times: 1})
	if out, code = c.try(nil, "apply", "-auto-approve", "-no-color"); code == 0 || !says(out, "it cannot be reached") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	b.script()
	c.apply()
	c.planIsEmpty()
	if ran := b.inside("one", "cat ran"); ran != "x\nx\n" {
		t.Errorf("it ran %q", ran)
	}
	c.destroy()
	c.nothingLeft()
}

func TestOutputIsKeptWhereAskedAndOnlyThere(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	body := sandboxHCL("name = \"one\"") + execHCL("shell = \"cat; echo err $S >&2; printf '\\\\377'; i=0; while [ $i -lt 7000 ]; do echo 0123456789; i=$((i+1)); done\"\nstdin = \"in\\n\"\n"+
		"capture = true\nsecret_refs = { S = \"file://"+b.write("token", "hush-hush\n")+"\" }")
	c.write(body)
	if out := c.apply(); strings.Contains(out, "err [") {
		t.Errorf("sensitive output is shown:\n%s", out)
	}
	c.planIsEmpty()
	out, _ := c.stateOf(execAddr, "stdout").(string)
	exact, _ := c.stateOf(execAddr, "stdout_base64").(string)
	errs, _ := c.stateOf(execAddr, "stderr").(string)
	if !strings.HasPrefix(out, "in\n\ufffd0123") || exact == "" || c.stateOf(execAddr, "stdout_truncated") != true ||
		len(out) > captured+10 || strings.Contains(errs, "hush") || !strings.HasPrefix(errs, "err ") {
		t.Errorf("kept: %.20q (%d bytes), base64 %.20q, %q", out, len(out), exact, errs)
	}
	c.write(body + "output \"o\" {\n  value = sandboxer_exec.e.stdout\n}\n")
	if out, code := c.try(nil, "plan", "-no-color"); code == 0 || !strings.Contains(out, "sensitive") {
		t.Errorf("an output that is not sensitive: exit %d\n%s", code, out)
	}
	c.write(body)
	c.destroy()
	c.nothingLeft()
}

// The record of a command outlives its sandbox: nothing that happened to that is in the way of a refresh or of
// a destroy.
func TestACommandsRecordOutlivesItsSandbox(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *bed){
		"destroyed elsewhere": func(b *bed) {
			if _, err := b.engine().Destroy(context.Background(), b.only().Receipt, engine.DestroyOptions{}); err != nil {
				b.t.Fatal(err)
			}
		},
		"out of reach": func(b *bed) {
			for _, op := range []vendor.Op{vendor.OpGet, vendor.OpList, vendor.OpFind} {
				b.script(vendor.Rule{Op: op, Do: vendor.DoUnreachable})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			c := newCLI(t, b)
			c.write(sandboxHCL("name = \"one\"") + execHCL("command = [\"true\"]"))
			c.apply()
			end(b)
			c.must("plan", "-no-color", "-target="+execAddr, "-refresh=false")
			c.must("state", "rm", addr)
			c.write(execHCL("command = [\"true\"]"))
			id, _ := c.stateOf(execAddr, "sandbox_id").(string)
			c.write(strings.ReplaceAll(execHCL("command = [\"true\"]"), "sandboxer_sandbox.a.id", fmt.Sprintf("%q", id)))
			c.planIsEmpty()
			c.destroy()
			b.script()
		})
	}
}

func TestACommandThatCannotRunIsRefusedBeforeAnythingExists(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	for body, want := range map[string]string{
		"":                                              "nothing to run",
		"command = []":                                  "nothing to run",
		"command = [\"a\"]\nshell = \"b\"":              "choose one",
		"command = [\"\"]":                              "first word is empty",
		"shell = \"a\"\ntimeout = \"0s\"":               "not positive",
		"shell = \"a\"\ntimeout = \"-1s\"":              "not positive",
		"shell = \"a\"\ntimeout = \"9000h\"":            "above the maximum",
		"shell = \"a\"\nenv = { \"A=B\" = \"x\" }":      "cannot name an environment variable",
		"shell = \"a\"\nexpected_exit_codes = [256]":    "out of range",
		"shell = \"a\"\nexpected_exit_codes = [0.5]":    "not a whole number",
		"shell = \"a\"\nexpected_exit_codes = []":       "at least 1",
		"command = [\"a\"]\nshell_path = \"/bin/bash\"": "without shell",
		"shell = \"a\"\nenv = { A = \"x\" }\nsecrets_wo = { A = \"hush-hush\" }": "set twice",
		"shell = \"a\"\nsecret_refs = { A = \"hush-hush\" }":                     "secret_refs",
	} {
		c.write(sandboxHCL("name = \"one\"") + execHCL(body))
		if out, code := c.try(nil, "validate", "-no-color"); code == 0 || !says(out, want) || says(out, "hush") || strings.Count(out, "Error: ") != 1 {
			t.Errorf("%q: exit %d, want %q, once:\n%s", body, code, want, out)
		}
	}
	c.write(sandboxHCL("name = \"one\"") + execHCL("command = [\"true\", sandboxer_sandbox.a.name, sandboxer_sandbox.a.expiry]"))
	if out := c.must("plan", "-no-color"); !says(out, `exit_code = (known after apply)`) || says(out, "stdout") {
		t.Errorf("the plan reads badly:\n%s", out)
	}
	c.nothingLeft()
}

// A failing command shows the end of what it printed, without the sandbox's secrets: in the run that made the sandbox,
// which was given them, and in a later one.
func TestAnErrorHasNoneOfTheSandboxesSecrets(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	const own = "name = \"one\"\nsecrets_wo = { TOKEN = \"hush-hush\" }\nsecrets_wo_version = 1"
	for _, run := range []string{"1", "2"} {
		c.write(sandboxHCL(own) + execHCL("shell = \"echo run "+run+" has $TOKEN >&2; exit 3\""))
		out, code := c.try(nil, "apply", "-auto-approve", "-no-color")
		if code == 0 || !says(out, "run "+run+" has [redacted]") || says(out, "has hush-hush") {
			t.Errorf("exit %d:\n%s", code, out)
		}
	}
	c.destroy()
	c.nothingLeft()
}
