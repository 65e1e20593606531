package provider

import (
	"os"
	"path/filepath"
	"testing"
)

// Terraform ends what it replaces before it asks for the new one, and tells
// neither of the other.
func TestAReplacementEndsNothingWhileTheLedgerIsDamaged(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL(`name = "one"`))
	c.apply()
	id := c.stateOf("sandboxer_sandbox.a", "id")
	file := filepath.Join(b.state, "ledger.db")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put := func(content []byte) {
		t.Helper()
		for _, log := range []string{"-wal", "-shm"} {
			_ = os.Remove(file + log)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	quiet := []string{"-no-color", "-input=false"}
	refused := func(when, want string, args ...string) {
		t.Helper()
		out, code := c.try(nil, append(args[:1:1], append(quiet, args[1:]...)...)...)
		if code == 0 || !says(out, "the ledger cannot be used", want) {
			t.Errorf("%s: exit %d\n%s", when, code, out)
		}
		there, err := b.vendor().Objects()
		if now := c.stateOf("sandboxer_sandbox.a", "id"); now != id || err != nil || len(there) != 1 {
			t.Errorf("%s: it is %v, was %v; at the vendor %v, %v", when, now, id, there, err)
		}
	}
	for name, content := range map[string][]byte{"empty": nil, "cut short": whole[:len(whole)/3]} {
		put(content)
		refused(name+", planned", "nothing can be created", "plan", "-replace=sandboxer_sandbox.a")
		put(whole)
		c.must(append([]string{"plan", "-replace=sandboxer_sandbox.a", "-out=plan"}, quiet...)...)
		put(content)
		refused(name+", after the plan", "was not replaced", "apply", "plan")
		put(whole)
		c.must("taint", "sandboxer_sandbox.a")
		c.must(append([]string{"plan", "-out=plan"}, quiet...)...)
		put(content)
		refused(name+", tainted", "was not replaced", "apply", "plan")
		put(whole)
		c.must("untaint", "sandboxer_sandbox.a")
	}
	put(nil)
	if out := c.must(append([]string{"destroy", "-auto-approve"}, quiet...)...); !says(out, "Ended, but not settled") {
		t.Errorf("told nothing of it:\n%s", out)
	}
	put(whole)
	if _, err := b.engine().Sweep(t.Context(), false, nil); err != nil {
		t.Error(err)
	}
	c.nothingLeft()
}
