package provider

import (
	"fmt"
	"strings"
	"testing"
)

// What is paid for by the last of what there is, in a configuration that asks
// for more and whose plan is refused, can be destroyed all the same, in every
// way there is.
func TestADestroyIsNotRefusedForWantOfFunds(t *testing.T) {
	t.Parallel()
	for _, way := range [][]string{{"destroy", "-auto-approve"}, {"apply", "-destroy", "-auto-approve"}, {"plan", "-destroy", "-out=p"}} {
		t.Run(strings.Join(way[:2], " "), func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			c := newCLI(t, b)
			asks := func(n int) {
				c.write(fmt.Sprintf("variable \"ttl\" { default = \"1h\" }\nresource \"sandboxer_sandbox\" \"a\" {\n  count = %d\n  profile = \"profile.stub\"\n  name = \"n-${count.index}\"\n  ttl = var.ttl\n}\n", n))
			}
			asks(1)
			if out, code := c.sandboxer("ledger", "budget", "set", "tight", "0.10 USD"); code != 0 {
				t.Fatal(out)
			}
			c.must("apply", "-auto-approve", "-no-color")
			if n := len(b.live()); n != 2 { // in the ledger and at the vendor
				t.Fatalf("%d live", n)
			}
			asks(3)
			if out, code := c.try(nil, "plan", "-no-color"); code != 1 || !strings.Contains(out, "cannot be made as it is configured: it cannot be paid for") ||
				!strings.Contains(strings.Join(strings.Fields(out), " "), "0.0405 available (limit: budget tight") {
				t.Fatalf("the plan goes on: exit code %d: %s", code, out)
			}
			c.must(append(way, "-no-color", "-var=ttl=20h")...)
			if way[0] == "plan" {
				c.must("apply", "-no-color", "p")
			}
			c.nothingLeft()
		})
	}
}
