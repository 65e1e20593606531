package provider

import (
	"testing"
	"time"
)

// Idleness ends a sandbox before its deadline. The next plan says so and replaces it, or keeps it as it is.
func TestTheNextPlanTellsOfAnIdleEnd(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	b.profile("profile.idle", "extends: profile.stub\nttl: { default: 1h, idle_reap: 5m }\n")
	c.write(`
resource "sandboxer_sandbox" "a" {
  profile = "profile.idle"
  name    = "again"
}
resource "sandboxer_sandbox" "b" {
  profile   = "profile.idle"
  name      = "kept"
  on_expiry = "keep"
}
`)
	c.apply()
	c.planIsEmpty()
	former, kept := c.stateOf("sandboxer_sandbox.a", "id"), c.stateOf("sandboxer_sandbox.b", "id")
	b.expire(10 * time.Minute)
	if out := c.must("plan", "-no-color"); !says(out, "has expired", "it ended before its deadline", "it was idle for 5m0s", "1 to add", "1 to destroy") {
		t.Error(out)
	}
	c.apply()
	c.planIsEmpty()
	if c.stateOf("sandboxer_sandbox.a", "id") == former || c.stateOf("sandboxer_sandbox.b", "id") != kept ||
		c.stateOf("sandboxer_sandbox.b", "state") != "expired" {
		t.Errorf("%v after %v; %v after %v is %v", c.stateOf("sandboxer_sandbox.a", "id"), former, c.stateOf("sandboxer_sandbox.b", "id"), kept,
			c.stateOf("sandboxer_sandbox.b", "state"))
	}
	c.destroy()
	c.nothingLeft()
}
