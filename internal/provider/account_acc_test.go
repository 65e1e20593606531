package provider

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

const (
	accountData = "data.sandboxer_account.a"
	usageData   = "data.sandboxer_usage.u"
	bothData    = "data \"sandboxer_account\" \"a\" {}\ndata \"sandboxer_usage\" \"u\" {\n  by = [\"profile\", \"consumer\"]\n}\n"
)

func size(address, list string, n int) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New(list), knownvalue.ListSizeExact(n))
}

func at0(address, list, field string, want knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New(list).AtSliceIndex(0).AtMapKey(field), want)
}

func TestAnAccountNobodyUsedIsEmptyAndReadingItLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.run(resource.TestStep{Config: b.config(bothData), ConfigStateChecks: []statecheck.StateCheck{
		statecheck.ExpectKnownValue(accountData, tfjsonpath.New("account"), knownvalue.StringExact("acme/web")),
		statecheck.ExpectKnownValue(accountData, tfjsonpath.New("org"), knownvalue.StringExact("acme")),
		statecheck.ExpectKnownValue(accountData, tfjsonpath.New("live_sandboxes"), knownvalue.Int64Exact(0)),
		size(accountData, "wallets", 0), size(accountData, "budgets", 0), size(usageData, "rows", 0), size(usageData, "totals", 0),
	}})
	if _, err := os.Stat(filepath.Join(b.state, "ledger.db")); !os.IsNotExist(err) {
		t.Errorf("reading made a ledger: %v", err)
	}
}

func TestCreditBudgetsAndUsageAreDataSources(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ctx := context.Background()
	e := b.engine()
	if _, _, err := e.GrantCredit(ctx, "acme", "100 USD", "k", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := e.SetBudget(ctx, engine.BudgetSpec{Name: "monthly", Limit: "50 USD", Period: "month"}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.SetBudget(ctx, engine.BudgetSpec{Name: "all", Limit: "60 USD", WholeOrg: true, Soft: true}); err != nil {
		t.Fatal(err)
	}
	sandbox := sandboxHCL(`consumer = { actor = "agt", harness = "h", run_id = "r" }`)
	after := "data \"sandboxer_account\" \"a\" { depends_on = [sandboxer_sandbox.a] }\n" +
		"data \"sandboxer_usage\" \"u\" {\n  by = [\"profile\", \"consumer\"]\n  depends_on = [sandboxer_sandbox.a]\n}\n"
	b.run(
		resource.TestStep{Config: b.config(sandbox + after), ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(accountData, tfjsonpath.New("live_sandboxes"), knownvalue.Int64Exact(1)),
			size(accountData, "wallets", 1), size(accountData, "budgets", 2), size(usageData, "rows", 1),
			at0(accountData, "wallets", "granted", knownvalue.StringExact("100.00")),
			at0(accountData, "wallets", "receivable", knownvalue.StringExact("0.00")),
			at0(accountData, "budgets", "name", knownvalue.StringExact("monthly")),
			at0(accountData, "budgets", "limit", knownvalue.StringExact("50.00")),
			at0(accountData, "ceilings", "metered", knownvalue.Bool(true)), at0(accountData, "ceilings", "used", knownvalue.StringExact("1")),
			at0(accountData, "ceilings", "currency", knownvalue.Null()), at0(accountData, "ceilings", "full", knownvalue.Bool(false)),
			at0(accountData, "budgets", "period", knownvalue.StringExact("month")), at0(accountData, "budgets", "resets_at", knownvalue.NotNull()),
			at0(usageData, "rows", "status", knownvalue.StringExact("running")),
			at0(usageData, "rows", "profile", knownvalue.StringExact("profile.stub")),
			at0(usageData, "rows", "actor", knownvalue.StringExact("agt")), at0(usageData, "rows", "run_id", knownvalue.StringExact("r")),
			at0(usageData, "rows", "host", knownvalue.Null()), at0(usageData, "rows", "currency", knownvalue.StringExact("USD")),
		}},
		resource.TestStep{Config: b.config(bothData), ConfigStateChecks: nil}, // destroys it
		resource.TestStep{Config: b.config(bothData), ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(accountData, tfjsonpath.New("live_sandboxes"), knownvalue.Int64Exact(0)),
			size(usageData, "rows", 1), size(usageData, "totals", 1),
			at0(usageData, "rows", "status", knownvalue.StringExact("settled")), at0(usageData, "rows", "lives", knownvalue.Int64Exact(1)),
			at0(usageData, "totals", "status", knownvalue.StringExact("settled")), at0(usageData, "totals", "billed", knownvalue.NotNull()),
		}},
		resource.TestStep{Config: b.config("data \"sandboxer_usage\" \"u\" {\n  from = \"2020-02\"\n  to = \"2020-01\"\n}\n"),
			ExpectError: regexp.MustCompile(`(?s)Usage cannot be read.*starts`)},
		resource.TestStep{Config: b.config("data \"sandboxer_usage\" \"u\" {\n  from = \"soon\"\n}\n"),
			ExpectError: regexp.MustCompile(`2026-01-31`)},
		resource.TestStep{Config: b.config("data \"sandboxer_usage\" \"u\" {\n  by = [\"colour\"]\n}\n"),
			ExpectError: regexp.MustCompile(`One of\s+account`)},
		resource.TestStep{Config: b.config("data \"sandboxer_usage\" \"u\" {\n  from = \"2020-01\"\n  to = \"2020-02\"\n}\n"),
			ConfigStateChecks: []statecheck.StateCheck{size(usageData, "rows", 0)}},
	)
}

// A price that nobody told is null in usage beside its count, and credit that
// would pay by it is refused in the plan.
func TestAPriceThatNobodyToldIsNullAndNoPlanForCredit(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.write("catalog/extensions/ext.dim.yaml", "id: ext.dim\nhandler: saas-stub\n")
	b.profile("profile.dim", "extends: profile.base\nextension: ext.dim\nisolation: { level: container }\n")
	e := b.engine()
	if _, err := e.SetBudget(context.Background(), engine.BudgetSpec{Name: "all", Limit: "60 USD", Soft: true}); err != nil {
		t.Fatal(err)
	}
	config := "resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"profile.dim\"\n}\n" +
		"data \"sandboxer_account\" \"a\" { depends_on = [sandboxer_sandbox.a] }\ndata \"sandboxer_usage\" \"u\" { depends_on = " +
		"[sandboxer_sandbox.a] }\n"
	var told []statecheck.StateCheck
	for _, list := range []string{"rows", "totals"} {
		told = append(told, at0(usageData, list, "unpriced_lives", knownvalue.Int64Exact(1)))
		for _, amount := range []string{"currency", "billed", "own_key", "own_place", "billed_at_least"} {
			told = append(told, at0(usageData, list, amount, knownvalue.Null()))
		}
	}
	b.run(
		resource.TestStep{Config: b.config(config),
			ConfigStateChecks: append(told, at0(accountData, "budgets", "unpriced_lives", knownvalue.Int64Exact(1)))},
		resource.TestStep{
			PreConfig: func() {
				if _, _, err := e.GrantCredit(context.Background(), "acme", "100 USD", "k", ""); err != nil {
					t.Fatal(err)
				}
			},
			Config: b.config(config + "resource \"sandboxer_sandbox\" \"b\" {\n  profile = \"profile.dim\"\n}\n"), PlanOnly: true,
			ExpectError: regexp.MustCompile(`its price is unknown`),
		},
		resource.TestStep{Config: b.config(config)},
	)
}
