package provider

import (
	"strings"
	"testing"
)

// What nothing carries out yet is refused in the plan, by the name of who asks
// for it, be it known or not, and keeps nobody from destroying.
func TestWhatIsNotBuiltIsRefusedInThePlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"scope agent":     {`scope = "agent"`, `scope: this version cannot share a sandbox (agent) yet`},
		"scope shared":    {`scope = "shared"`, `scope: this version cannot share a sandbox (shared) yet`},
		"paused":          {`desired_mode = "paused"`, `desired_mode: this version cannot pause a sandbox yet`},
		"a fork":          {`from_sandbox = "sbx-aaaaaaaaaaaaaaaaaaaa"`, `from_sandbox: this version cannot fork a live sandbox yet`},
		"an unknown fork": {`from_sandbox = terraform_data.v.output`, `from_sandbox: this version cannot fork a live sandbox yet`},
		"the profile":     {`profile = "profile.shared"`, `profile.shared@1.0.0 sets scope_default, which this version does not carry out yet`},
		"its ancestor":    {`profile = "profile.heir"`, `profile.heir@1.0.0 sets scope_default, which this version does not carry out yet`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.profile("profile.shared", "extends: profile.quickstart\nscope_default: shared\n")
			b.profile("profile.heir", "extends: profile.shared\n")
			if !strings.Contains(c.body, "profile") {
				c.body += "\n  profile = \"profile.stub\""
			}
			cl := newCLI(t, b)
			cl.write("resource \"terraform_data\" \"v\" { input = \"sbx-aaaaaaaaaaaaaaaaaaaa\" }\nresource \"sandboxer_sandbox\" \"a\" {\n  " + c.body + "\n}\n")
			refused(t, cl, c.want)
		})
	}
}

// A request that says session itself does not take the profile's word.
func TestARequestsOwnScopeCounts(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	b := newBed(t)
	b.profile("profile.shared", "extends: profile.stub\nscope_default: shared\n")
	c := newCLI(t, b)
	c.write("resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"profile.shared\"\n  scope = \"session\"\n}\n")
	c.must("plan", "-no-color", "-input=false")
}

func TestALiveSandboxIsNeitherPausedNorKeptFromItsDestroy(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL(`name = "one"`))
	c.apply()
	c.write(sandboxHCL("name = \"one\"\n  desired_mode = \"paused\""))
	out, code := c.try(nil, "plan", "-no-color", "-input=false")
	if code == 0 || !strings.Contains(out, "desired_mode: this version cannot pause") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	c.destroy()
	c.nothingLeft()
}
