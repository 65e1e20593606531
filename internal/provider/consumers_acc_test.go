package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// inDocker is an example that runs in this machine's Docker, in an image that needs no registry.
func inDocker(t *testing.T, name string) *cli {
	t.Helper()
	requireTerraform(t)
	hosttest.Docker(t)
	c := example(t, name)
	c.env = append(c.env, "TF_VAR_image="+hosttest.Image(t))
	return c
}

func (c *cli) read(name string) string {
	c.t.Helper()
	raw, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(raw)
}

// A harness: instructions and a token inside, an agent that works, its files back.
func TestTheAgentExampleWorksAndGivesItsFilesBack(t *testing.T) {
	t.Parallel()
	c := inDocker(t, "agent")
	if out, code := c.try([]string{"AGENT_TOKEN="}, "apply", "-auto-approve", "-no-color"); code == 0 || !says(out, "AGENT_TOKEN") {
		t.Errorf("without its token: exit %d\n%s", code, out)
	}
	c.env = append(c.env, "AGENT_TOKEN=hush-hush")
	c.apply()
	c.planIsEmpty()
	const answer = "task: Count the words of notes.txt.\nwords: 5\n"
	if got := c.must("output", "-raw", "answer"); got != answer {
		t.Errorf("it answered %q", got)
	}
	if strings.Contains(c.read("terraform.tfstate"), "hush-hush") {
		t.Error("the state has the token")
	}
	c.destroy()
	if got := c.read("work/answer.txt"); got != answer {
		t.Errorf("what came back is %q", got)
	}
	c.ownsNothing()
}

// A generator: sources in, a build, artifacts out; new sources are a new build.
func TestTheGeneratorExampleBuildsAndGivesItsArtifactsBack(t *testing.T) {
	t.Parallel()
	c := inDocker(t, "generator")
	c.apply()
	c.planIsEmpty()
	first := c.must("output", "-raw", "checksums")
	if !strings.Contains(first, "page.txt") {
		t.Errorf("the checksums are %q", first)
	}
	c.add("source/parts/2.txt", "another part\n")
	c.apply()
	c.planIsEmpty()
	if again := c.must("output", "-raw", "checksums"); again == first {
		t.Error("new sources made nothing new")
	}
	c.destroy()
	if got := c.read("source/dist/page.txt"); !strings.HasSuffix(got, "first part\nanother part\n") {
		t.Errorf("what came back is %q", got)
	}
	c.ownsNothing()
}
