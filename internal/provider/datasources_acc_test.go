package provider

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

func TestTheCatalogAndTheLedgerAreReadAsData(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.profile("profile.asked", "extends: profile.stub\nmetadata: { cost_class: self-hosted }\n"+
		"inputs: { n: { type: number, required: true, doc: How many. }, m: { type: map, default: { a: [1, x] } } }\n")
	read := b.config(`
data "sandboxer_profile" "p" { profile = "profile.asked" }
data "sandboxer_extensions" "all" {}
data "sandboxer_sandboxes" "live" {}
data "sandboxer_sandboxes" "run" {
  all    = true
  run_id = "r1"
}
`)
	at := func(data string, path tfjsonpath.Path, want knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.sandboxer_"+data, path, want)
	}
	input := func(i int, field string) tfjsonpath.Path {
		return tfjsonpath.New("inputs").AtSliceIndex(i).AtMapKey(field)
	}
	list := tfjsonpath.New("sandboxes")
	one := sandboxHCL("name = \"one\"\nconsumer = { run_id = \"r1\" }")
	b.run(
		resource.TestStep{Config: read, ConfigStateChecks: []statecheck.StateCheck{
			at("profile.p", tfjsonpath.New("version"), knownvalue.StringExact("1.0.0")),
			at("profile.p", tfjsonpath.New("extension"), knownvalue.StringExact("ext.saas-stub")),
			at("profile.p", tfjsonpath.New("cost_class"), knownvalue.StringExact("self-hosted")),
			at("profile.p", input(2, "default_json"), knownvalue.StringExact(`{"a":[1,"x"]}`)),
			at("profile.p", input(3, "name"), knownvalue.StringExact("n")),
			at("profile.p", input(3, "required"), knownvalue.Bool(true)),
			at("profile.p", input(3, "doc"), knownvalue.StringExact("How many.")),
			at("sandboxes.live", list, knownvalue.ListSizeExact(0)), // there is no ledger yet
			at("extensions.all", tfjsonpath.New("extensions"), knownvalue.ListPartial(map[int]knownvalue.Check{
				0: knownvalue.ObjectPartial(map[string]knownvalue.Check{"id": knownvalue.StringExact("ext.compose-ssh"),
					"takes_part": knownvalue.Bool(true), "pricing_model": knownvalue.StringExact("self-hosted")}),
				4: knownvalue.ObjectPartial(map[string]knownvalue.Check{"id": knownvalue.StringExact("ext.e2b"),
					"takes_part": knownvalue.Bool(false), "credentials": knownvalue.ListPartial(map[int]knownvalue.Check{
						0: knownvalue.StringExact("api_key")})}),
			})),
		}},
		resource.TestStep{Config: b.config(one)},
		resource.TestStep{Config: b.config(one + "resource \"sandboxer_sandbox\" \"b\" {\n  profile = \"profile.stub\"\n  name = \"two\"\n}\n")},
		resource.TestStep{Config: read + one, ConfigStateChecks: []statecheck.StateCheck{
			at("sandboxes.run", list, knownvalue.ListSizeExact(1)),
			at("sandboxes.run", list.AtSliceIndex(0).AtMapKey("name"), knownvalue.StringExact("one")),
			at("sandboxes.run", list.AtSliceIndex(0).AtMapKey("state"), knownvalue.StringExact("ready")),
		}},
		resource.TestStep{Config: read + one, ConfigPlanChecks: empty(), ConfigStateChecks: []statecheck.StateCheck{
			at("sandboxes.live", list, knownvalue.ListSizeExact(1)),
		}},
		resource.TestStep{Config: b.config(`data "sandboxer_profile" "p" { profile = "profile.askd" }`),
			ExpectError: regexp.MustCompile(`profile\.asked`)},
	)
}

func TestFunctionsReadWhatArgumentsAreWrittenIn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(`
output "day" { value = provider::sandboxer::duration("1d") }
output "half" { value = provider::sandboxer::duration("1m30.5s") }
output "pinned" { value = provider::sandboxer::profile("profile.x@1.2.0") }
output "newest" { value = provider::sandboxer::profile("profile.x").version == null }
`)
	c.apply()
	for name, want := range map[string]string{"day": "86400", "half": "90.5", "newest": "true",
		"pinned": `{"id":"profile.x","version":"1.2.0"}`} {
		if got := flat(c.must("output", "-json", name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for call, want := range map[string]string{`duration("soon")`: "soon", `duration("")`: "duration", `profile("quickstart")`: "profile",
		`profile("profile.x@new")`: "version"} {
		c.write("output \"o\" {\n  value = provider::sandboxer::" + call + "\n}\n")
		if out, code := c.try(nil, "plan", "-no-color"); code == 0 || !says(out, "Invalid function argument", want) {
			t.Errorf("%s: exit %d\n%s", call, code, out)
		}
	}
}
