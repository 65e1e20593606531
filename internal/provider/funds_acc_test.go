package provider

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
)

// budget bounds what acme/web may spend on the stub vendor, for ever.
func (b *bed) budget(limit int64) {
	b.t.Helper()
	l, err := sqlstore.Open(context.Background(), sqlstore.DefaultURL(b.state), sqlstore.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.PutBudget(context.Background(),
		ledger.Budget{Account: "acme/web", Name: "month", Currency: "USD", Limit: limit, Hard: true, Period: "month"}); err != nil {
		b.t.Fatal(err)
	}
}

// written is every file of the state folder with its content, but SQLite's side
// files.
func (b *bed) written() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(b.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, "-wal") || strings.HasSuffix(path, "-shm") {
			return err
		}
		out[path] = d.Type().String()
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out[path] += fmt.Sprintf(" %x", sha256.Sum256(content))
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// Over budget a plan fails with the numbers and the ttl that fits, and writes
// nothing.
func TestAPlanOverBudgetFailsWithTheNumbers(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.budget(100_000_000) // 0.10 USD; an hour costs 0.0586
	var before map[string]string
	look := func(f func()) resource.TestStep {
		return resource.TestStep{PreConfig: f, Config: b.config(sandboxHCL("name = \"one\"\n  ttl = \"8h\"")), PlanOnly: true,
			ExpectError: regexp.MustCompile(`(?s)cannot\s+be\s+paid\s+for.*ttl\s+=\s+"8h".*ext\.saas-stub\s+needs\s+0\.\d+\s+USD\s+for\s+a\s+ttl\s+of\s+8h,\s+0\.10\s+available\s+\(limit:\s+budget\s+month\s+of\s+acme/web\);\s+a\s+ttl\s+of\s+at\s+most\s+\d+h\d+m\s+fits.*What\s+to\s+do:\s+Set\s+ttl\s+to\s+at\s+most`)}
	}
	again := look(func() {
		if after := b.written(); !reflect.DeepEqual(before, after) {
			t.Errorf("planning wrote: %v, before %v", after, before)
		}
	})
	b.run(look(func() { before = b.written() }), again,
		resource.TestStep{Config: b.config(sandboxHCL("name = \"one\"\n  ttl = \"1h\""))},
		// What its own life holds counts as free for a longer one, and for a new one in its place.
		resource.TestStep{Config: b.config(sandboxHCL("name = \"one\"\n  ttl = \"90m\""))},
		resource.TestStep{Config: b.config(sandboxHCL("name = \"one\"\n  ttl = \"80m\"\n  env = { A = \"2\" }"))},
		resource.TestStep{Config: b.config(sandboxHCL("name = \"one\"\n  ttl = \"9h\"\n  env = { A = \"2\" }")),
			ExpectError: regexp.MustCompile(`(?s)needs\s+0\.\d+\s+USD.*limit:\s+budget\s+month\s+of\s+acme/web`)},
		resource.TestStep{Config: b.config(sandboxHCL("name = \"one\"\n  ttl = \"80m\"\n  env = { A = \"2\" }")), PlanOnly: true},
	)
}

// Each of the two is affordable, and both together are not: the plan says so,
// and nothing is made.
func TestAPlanCountsItsSandboxesTogether(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.budget(100_000_000) // 0.10 USD; an hour costs 0.0596
	two := func(ttl string) string {
		return b.config(fmt.Sprintf("resource \"sandboxer_sandbox\" \"a\" {\n  count   = 2\n  profile = \"profile.stub\"\n  name    = "+
			"\"n${count.index}\"\n  ttl     = %q\n}\n", ttl))
	}
	before := b.written()
	b.run(resource.TestStep{Config: two("1h"), PlanOnly: true,
		ExpectError: regexp.MustCompile(`(?s)available\s+\(limit:\s+budget\s+month\s+of\s+acme/web\)\s+after\s+0\.05\d+\s+for\s+others\s+in\s+this\s+plan;\s+a\s+ttl\s+of\s+at\s+most\s+\d+m\s+fits`)},
		resource.TestStep{PreConfig: func() {
			if after := b.written(); !reflect.DeepEqual(before, after) {
				t.Errorf("planning wrote: %v, before %v", after, before)
			}
		}, Config: two("45m")},
		// Both are made anew in the place of themselves.
		resource.TestStep{Config: strings.Replace(two("45m"), "count   = 2", "count   = 2\n  triggers = { a = \"1\" }", 1)},
	)
}

// Each of the two can end later, and not both of them: the plan says so, and
// nothing is changed. A shorter ttl makes room for what another one needs.
func TestAPlanCountsLaterEndsTogether(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.budget(100_000_000) // 0.10 USD; an hour costs 0.0596
	two := func(first, second string) string {
		return b.config(fmt.Sprintf("locals { ttl = [%q, %q] }\nresource \"sandboxer_sandbox\" \"a\" {\n  count   = 2\n  profile = "+
			"\"profile.stub\"\n  name    = \"n${count.index}\"\n  ttl     = local.ttl[count.index]\n}\n", first, second))
	}
	b.run(resource.TestStep{Config: two("30m", "30m")},
		resource.TestStep{Config: two("1h", "1h"), PlanOnly: true,
			ExpectError: regexp.MustCompile(`(?s)limit:\s+budget\s+month\s+of\s+acme/web\)\s+after\s+0\.05\d+\s+for\s+others\s+in\s+this\s+plan`)},
		resource.TestStep{Config: two("1h", "30m")},
		resource.TestStep{Config: two("20m", "30m")},
		resource.TestStep{Config: two("20m", "1h")},
	)
}

// What would refuse a new sandbox refuses no change of one that lives: it is
// judged by its own life.
func TestAShorterLifeNeedsNoLeave(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	hour := b.config(sandboxHCL("name = \"one\"\n  ttl = \"1h\"\n  max_cost = \"0.10 USD\""))
	shorter := func(ttl string, before func()) resource.TestStep {
		return resource.TestStep{PreConfig: before, ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			Config: b.config(sandboxHCL("name = \"one\"\n  ttl = \"" + ttl + "\"\n  max_cost = \"0.10 USD\""))}
	}
	b.run(resource.TestStep{Config: hour},
		shorter("50m", func() { b.budget(0) }),
		shorter("40m", func() {
			b.write("catalog/policies/none.yaml", "id: policy.none\naccount: \"*\"\nextensions: { allowed: [] }\n")
		}),
		shorter("30m", func() { b.write("catalog/policies/none.yaml", "id: policy.none\naccount: [\n") }),
	)
}
