package provider

import (
	"strings"
	"testing"
)

// What is larger than the machine is refused with the machine's own size, and
// nothing is asked of its Docker.
func TestWhatIsLargerThanTheHostIsRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	s, image := requireHost(t)
	b := newBed(t)
	b.stack(image, stackYAML)
	b.profile("profile.huge", "extends: profile.stack\nresources: { cpu: 500, memory_mb: 16777216 }\n")
	c := newCLI(t, b)
	c.write(sshHost(s, ""))
	c.must("apply", "-no-color", "-auto-approve")
	c.write(sshHost(s, "") + sandboxOn("profile.huge"))
	out, code := c.try(nil, "apply", "-no-color", "-auto-approve", "-input=false")
	if text := flat(out); code == 0 || !strings.Contains(text, "viability.resources") || !strings.Contains(text, "cpu 500 is above its") ||
		!strings.Contains(text, "use a larger host") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if out := c.must("state", "list"); strings.Contains(out, "sandboxer_sandbox") {
		t.Errorf("in the state: %s", out)
	}
	c.write("")
	c.must("apply", "-no-color", "-auto-approve")
}
