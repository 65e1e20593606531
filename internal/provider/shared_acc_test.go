package provider

import (
	"strings"
	"testing"
	"time"
)

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

// Resources of one share_key hold one sandbox, in one state and in another: the plan after is empty, each destroy releases
// it, and the last one ends it.
func TestResourcesShareASandbox(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	b := newBed(t)
	shared := func(name, more string) string {
		return "resource \"sandboxer_sandbox\" \"" + name + "\" {\n  profile = \"profile.stub\"\n  scope = \"shared\"\n  share_key = \"team\"\n" + more + "}\n"
	}
	c, other := newCLI(t, b), newCLI(t, b)
	c.write(shared("a", "") + shared("b", "  ttl = \"2h\"\n"))
	c.apply()
	c.planIsEmpty()
	other.write(shared("c", ""))
	other.apply()
	other.planIsEmpty()
	c.planIsEmpty()
	id := c.stateOf("sandboxer_sandbox.a", "id")
	b.only()
	if x, y := c.stateOf("sandboxer_sandbox.b", "id"), other.stateOf("sandboxer_sandbox.c", "id"); x != id || y != id {
		t.Fatalf("%v, %v and %v; live: %v", id, x, y, b.live())
	}
	if n := len(b.only().Leases); n != 3 {
		t.Errorf("%d hold it", n)
	}
	other.write(shared("c", "  env = { A = \"b\" }\n"))
	if out, code := other.try(nil, "plan", "-no-color", "-input=false"); code == 0 || !strings.Contains(out, "another specification") {
		t.Errorf("another specification: exit %d\n%s", code, out)
	}
	other.write(shared("c", "  triggers = { a = \"b\" }\n"))
	other.apply()
	other.planIsEmpty()
	if y := other.stateOf("sandboxer_sandbox.c", "id"); y != id {
		t.Errorf("replaced while others hold it: %v, was %v", y, id)
	}
	c.write(shared("b", "  ttl = \"2h\"\n"))
	c.apply()
	c.planIsEmpty()
	if n := len(b.only().Leases); n != 2 {
		t.Errorf("%d hold it", n)
	}
	c.destroy()
	if s := b.only(); len(s.Leases) != 1 {
		t.Errorf("held by %v", s.Leases)
	}
	other.destroy()
	if len(b.live()) != 0 {
		t.Errorf("live: %v", b.live())
	}
	b.verify()
}

// Changed triggers make the sandbox again in place: the same id and name, with a new handle, a new end and nothing of what
// was inside.
func TestTriggersRecreateInPlace(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	b := newBed(t)
	c := newCLI(t, b)
	body := func(mode, trigger string) string {
		return "resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"profile.stub\"\n  name = \"one\"\n" + mode +
			"  triggers = { a = \"" + trigger + "\" }\n}\n"
	}
	const recreate = "  replace_mode = \"recreate\"\n"
	c.write(body(recreate, "1"))
	c.apply()
	c.planIsEmpty()
	const at = "sandboxer_sandbox.a"
	id, ends := c.stateOf(at, "id"), c.stateOf(at, "expires_at")
	c.write(body(recreate, "2"))
	if out := c.must("plan", "-no-color", "-input=false"); !strings.Contains(out, "0 to add, 1 to change, 0 to destroy") {
		t.Fatal(out)
	}
	time.Sleep(time.Second) // the end has no smaller unit
	c.apply()
	c.planIsEmpty()
	if got := c.stateOf(at, "id"); got != id || b.only().Generation != 2 || c.stateOf(at, "expires_at") == ends {
		t.Errorf("%v, was %v; ends %v", got, id, ends)
	}
	c.write(body("", "3"))
	c.apply()
	c.planIsEmpty()
	if got := c.stateOf(at, "id"); got == id {
		t.Error("it was not replaced")
	}
	c.write(body(recreate+"  deletion_protection = true\n", "3"))
	c.apply()
	c.write(body(recreate+"  deletion_protection = true\n", "4"))
	if out, code := c.try(nil, "plan", "-no-color", "-input=false"); code == 0 || !strings.Contains(out, "is protected") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// What a request may set instead of its profile's, it sets; the rest is refused in the plan, by name.
func TestARequestSetsWhatItsProfileAllows(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	b := newBed(t)
	b.profile("profile.open", "extends: profile.stub\nresources: { cpu: 1, memory_mb: 512 }\noverrides: [extension, resources]\n")
	c := newCLI(t, b)
	body := func(more string) string {
		return "resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"profile.open\"\n" + more + "}\n"
	}
	c.write(body("  image = \"node:22\"\n"))
	refused(t, c, "does not let its requests set image")
	c.write(body("  extension = \"ext.unknown\"\n"))
	refused(t, c, "ext.unknown")
	c.write(body("  extension = \"ext.saas-stub\"\n  resources = { gpu = { model = \"H100\" } }\n"))
	refused(t, c, "it has no GPU")
	c.write(body("  extension = \"ext.saas-stub\"\n  resources = { cpu = 0.5 }\n"))
	c.apply()
	c.planIsEmpty()
	id := c.stateOf("sandboxer_sandbox.a", "id")
	c.write(body("  extension = \"ext.saas-stub\"\n  resources = { cpu = 2, memory_mb = 1024 }\n"))
	c.apply()
	c.planIsEmpty()
	if c.stateOf("sandboxer_sandbox.a", "id") == id {
		t.Error("other resources did not replace it")
	}
}
