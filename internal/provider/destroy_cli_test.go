package provider

import (
	"strings"
	"testing"
)

// A configuration that grew beyond what there is has a plan that is refused; it
// can be destroyed all the same, in every way there is.
func TestADestroyIsNotRefusedForWantOfFunds(t *testing.T) {
	t.Parallel()
	for _, way := range [][]string{{"destroy", "-auto-approve"}, {"apply", "-destroy", "-auto-approve"}, {"plan", "-destroy", "-out=p"}} {
		t.Run(strings.Join(way[:2], " "), func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			c := newCLI(t, b)
			c.write("variable \"ttl\" { default = \"1h\" }\nvariable \"size\" { default = 3 }\nresource \"sandboxer_sandbox\" \"a\" {\n  count = " +
				"var.size\n  profile = \"profile.stub\"\n  name = \"n-${count.index}\"\n  ttl = var.ttl\n}\n")
			if out, code := c.sandboxer("ledger", "budget", "set", "tight", "0.10 USD"); code != 0 {
				t.Fatal(out)
			}
			c.must("apply", "-auto-approve", "-no-color", "-var=size=1")
			out, code := c.try(nil, "plan", "-no-color")
			if code != 1 || !strings.Contains(out, "cannot be created as configured: it cannot be paid for") ||
				!strings.Contains(strings.Join(strings.Fields(out), " "), "0.0405 available (limit: budget tight") {
				t.Fatalf("the plan goes on: exit code %d: %s", code, out)
			}
			if n := len(b.live()); n != 2 { // in the ledger and at the vendor
				t.Fatalf("%d live", n)
			}
			c.must(append(way, "-no-color", "-var=ttl=20h")...)
			if way[0] == "plan" {
				c.must("apply", "-no-color", "p")
			}
			c.nothingLeft()
		})
	}
}
