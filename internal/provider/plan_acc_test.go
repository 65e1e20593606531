package provider

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// fourPlaces are profiles for four extensions, and one that may run at several.
func fourPlaces(b *bed) {
	const metered = "extends: profile.base\nisolation: { level: container }\nresources: { cpu: 2, memory_mb: 1024 }\n"
	b.profile("profile.eventual", metered+"extension: ext.saas-stub-eventual\n")
	b.profile("profile.metered", metered+"extension: ext.saas-stub\n")
	b.profile("profile.anywhere", "extends: profile.base\nisolation: { level: container }\nimage: { pull: \"python:3.12\" }\nresources: { "+
		"cpu: 2, memory_mb: 1024 }\n")
	b.profile("profile.cheap", metered+"route: { strategy: lowest-cost, fallback: [ext.saas-stub-eventual, ext.saas-stub] }\n")
}

const tenSandboxes = `
resource "sandboxer_host" "far" {
  name     = "builder"
  ssh      = { address = "192.0.2.1", user = "sandbox", host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGfVNc1tXBQ5cd7ObXhvXTXNQoPPbJWzcYIqmVVlMWC8" }
  cost     = { per_hour = "0.80 USD", cpu = 16, memory_mb = 65536 }
}

resource "sandboxer_sandbox" "local" {
  count   = 3
  profile = "profile.quickstart"
  name    = "local-${count.index}"
}

resource "sandboxer_sandbox" "metered" {
  count    = 3
  profile  = "profile.metered"
  name     = "metered-${count.index}"
  ttl      = "2h"
  max_cost = "LIMIT"
}

resource "sandboxer_sandbox" "cheap" {
  count   = 2
  profile = "profile.cheap"
  name    = "cheap-${count.index}"
  ttl     = "2h"
}

resource "sandboxer_sandbox" "far" {
  count   = 2
  profile = "profile.anywhere"
  name    = "far-${count.index}"
  hosts   = [sandboxer_host.far.ref]
  ttl     = "2h"
}
`

// Ten sandboxes over four extensions: each says in one line where it runs and
// what it costs, and a cause is told once, not once for each sandbox.
func TestAPlanOfTenSandboxesReadsWell(t *testing.T) {
	t.Parallel()
	c := newCLI(t, newBed(t))
	fourPlaces(c.b)
	c.write(strings.Replace(tenSandboxes, "LIMIT", "1.00 USD", 1))
	out := c.must("plan", "-no-color")
	for line, times := range map[string]int{
		`Plan: 11 to add`: 1,
		`summary    = "0.00 USD an hour, at most 0.00 USD for 1h"`:          3,
		`summary    = "0.117 USD an hour, at most 0.235 USD for 2h"`:        5,
		`summary    = "0.0694609 USD an hour, at most 0.138922 USD for 2h"`: 2,
		`Warning: Not every place can run profile.anywhere`:                 1,
		`Warning: Not every place can run profile.cheap`:                    1,
		`(and one more similar warning elsewhere)`:                          2,
	} {
		if n := strings.Count(out, line); n != times {
			t.Errorf("%d times instead of %d: %s", n, times, line)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
	if _, err := os.Stat(c.b.state); !os.IsNotExist(err) {
		t.Errorf("a plan wrote into the state folder: %v", err)
	}
}

// Above max_cost a plan fails with the arithmetic, and so does an apply whose
// prices have risen since the plan: nothing is made.
func TestAPlanAboveMaxCostShowsTheArithmetic(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	fourPlaces(b)
	b.run(resource.TestStep{
		Config: b.config(strings.Replace(tenSandboxes, "LIMIT", "0.20 USD", 1)),
		ExpectError: regexp.MustCompile(`(?s)costs\s+up\s+to\s+0\.235\s+USD\s+for\s+a\s+ttl\s+of\s+2h,\s+0\.035\s+USD\s+above\s+max_cost\s+0\.20\s+USD:.*` +
			`creation +once 0\.001 USD\s+vcpu +14400 vcpu-second x 0\.000014 USD = 0\.2016 USD\s+memory +7200 gib-second x 0\.0000045 USD = 0\.0324 USD\s+sum +0\.235 USD\s+max_cost +0\.20 USD`),
	})
}

// A quote tells all of a price: lines with their sources, the decision with
// every reason, and with history what past sandboxes and the wallet say.
func TestAQuoteTellsAllOfAPrice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	fourPlaces(b)
	const quote = "data.sandboxer_quote.q"
	first := func(path ...string) tfjsonpath.Path {
		p := tfjsonpath.New("candidates").AtSliceIndex(0)
		for _, k := range path {
			p = p.AtMapKey(k)
		}
		return p
	}
	is := func(p tfjsonpath.Path, want string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(quote, p, knownvalue.StringExact(want))
	}
	b.run(resource.TestStep{
		Config: b.config("data \"sandboxer_quote\" \"q\" {\n profile = \"profile.cheap\"\n ttl = \"2h\"\n expected_duration = \"30m\"\n " +
			"history = true\n}\n"),
		ConfigStateChecks: []statecheck.StateCheck{
			is(first("extension"), "ext.saas-stub"), is(first("creation"), "0.001"), is(first("expected"), "0.0595"), is(first("maximum"), "0.235"),
			is(first("low"), "0.0010325"), is(first("reserve"), "0.235"), is(first("wallet"), "0.235"),
			statecheck.ExpectKnownValue(quote, first("p95"), knownvalue.Null()),
			statecheck.ExpectKnownValue(quote, first("digest"), knownvalue.StringRegexp(regexp.MustCompile(`^[0-9a-f]{64}$`))),
			is(first("lines").AtSliceIndex(1).AtMapKey("quantity"), "3600"), is(first("lines").AtSliceIndex(1).AtMapKey("as_of"), "2026-08-01"),
			is(tfjsonpath.New("route").AtMapKey("strategy"), "lowest-cost"),
			is(tfjsonpath.New("route").AtMapKey("order").AtSliceIndex(1), "ext.saas-stub-eventual"),
			statecheck.ExpectKnownValue(quote, tfjsonpath.New("route").AtMapKey("why"), knownvalue.NotNull()),
			is(tfjsonpath.New("route").AtMapKey("refused").AtSliceIndex(0).AtMapKey("refusals").AtSliceIndex(0).AtMapKey("stage"), "viability"),
			statecheck.ExpectKnownValue(quote, tfjsonpath.New("past"), knownvalue.Int64Exact(0)),
			statecheck.ExpectKnownValue(quote, tfjsonpath.New("funds"), knownvalue.ListSizeExact(0)),
		},
	})
}
