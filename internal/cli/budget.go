package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

type budgetView struct {
	Account  string     `json:"account"`
	Name     string     `json:"name"`
	Currency string     `json:"currency"`
	Limit    string     `json:"limit"`
	Hard     bool       `json:"hard"`
	Period   *string    `json:"period"` // null: never resets
	Spent    string     `json:"spent"`
	Over     string     `json:"over"`
	Reserved string     `json:"reserved"`
	Left     string     `json:"left"`
	Since    *time.Time `json:"since"`
	ResetsAt *time.Time `json:"resets_at"`
	// UnpricedLives counts the lives that none of the amounts include.
	UnpricedLives int64 `json:"unpriced_lives"`
}

func viewOfBudget(b engine.BudgetView) budgetView {
	v := budgetView{Account: b.Account, Name: b.Name, Currency: b.Currency, Limit: b.Limit, Hard: b.Hard, Period: known(b.Period),
		Spent: b.Spent, Over: b.Over, Reserved: b.Reserved, Left: b.Left, UnpricedLives: b.Unpriced}
	if !b.ResetsAt.IsZero() {
		v.Since, v.ResetsAt = &b.Since, &b.ResetsAt
	}
	return v
}

func budgetViews(list []engine.BudgetView) []budgetView {
	out := make([]budgetView, 0, len(list))
	for _, b := range list {
		out = append(out, viewOfBudget(b))
	}
	return out
}

func (a *app) ledgerBudgetCommand() *cobra.Command {
	return group("budget", "Set, list and remove budgets", a.budgetSetCommand(), a.budgetListCommand(), a.budgetRemoveCommand())
}

func (a *app) budgetSetCommand() *cobra.Command {
	var spec engine.BudgetSpec
	c := &cobra.Command{
		Use:   "set NAME AMOUNT",
		Short: "Set a budget for the account or its whole organization",
		Long: `A budget limits what sandboxes may cost in a period, whoever pays: credit, your
own keys, your own places. A sandbox is created only if its maximum fits every
hard budget; a soft one only warns. Setting a budget again changes the limit; what
the period has spent still counts.`,
		Example: `  sandboxer ledger budget set monthly "200 USD" --period month --account acme/web
  sandboxer ledger budget set all "1000 USD" --org --soft`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, given []string) error {
			spec.Name, spec.Limit = given[0], given[1]
			return a.withEngine(func(e *engine.Engine) error {
				b, err := e.SetBudget(c.Context(), spec)
				if err != nil {
					return err
				}
				v := viewOfBudget(b)
				return a.show(v, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "Budget %s of %s: %s %s %s, %s. %s is left.\n", v.Name, v.Account, v.Limit, v.Currency, v.each(), v.kind(),
						bounded("at most", v.Left, v.UnpricedLives))
					if err != nil {
						return err
					}
					return v.printUnpriced(w)
				})
			})
		},
	}
	c.Flags().StringVar(&spec.Period, "period", "", "day, week (from Monday) or month, in UTC (default: it never resets)")
	c.Flags().BoolVar(&spec.Soft, "soft", false, "warn instead of refusing")
	c.Flags().BoolVar(&spec.WholeOrg, "org", false, "for all of the organization's workspaces together")
	return c
}

func (a *app) budgetListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the budgets of the organization and its workspaces",
		Args:  args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				list, err := e.Budgets(c.Context())
				if err != nil {
					return err
				}
				views := budgetViews(list)
				return a.show(views, func(w io.Writer) error { return printBudgets(w, views, time.Now()) })
			})
		},
	}
}

func (a *app) budgetRemoveCommand() *cobra.Command {
	var whole bool
	var currency string
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a budget's limit; its history stays",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				b, err := e.RemoveBudget(c.Context(), whole, given[0], currency)
				if err != nil {
					return err
				}
				v := viewOfBudget(b)
				return a.show(v, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "Removed the budget %s of %s, %s %s %s.\n", v.Name, v.Account, v.Limit, v.Currency, v.each())
					return err
				})
			})
		},
	}
	c.Flags().BoolVar(&whole, "org", false, "the whole organization's budget")
	c.Flags().StringVar(&currency, "currency", "", "currency `code`, if several budgets have the name")
	return c
}

func (b budgetView) each() string {
	if b.Period == nil {
		return "in all"
	}
	return "a " + *b.Period
}

func (b budgetView) kind() string {
	if b.Hard {
		return "hard"
	}
	return "soft"
}

func printBudgets(w io.Writer, list []budgetView, now time.Time) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "No budgets. Set one: sandboxer ledger budget set monthly \"100 USD\" --period month")
		return err
	}
	rows := [][]string{{"BUDGET", "OF", "KIND", "PERIOD", "LIMIT", "SPENT", "RESERVED", "LEFT", "CURRENCY", "RESETS"}}
	for _, b := range list {
		resets := "never"
		if b.ResetsAt != nil {
			resets = relative(*b.ResetsAt, now)
		}
		left := b.Left
		if strings.HasPrefix(left, "-") {
			left += " (over)"
		}
		rows = append(rows, []string{b.Name, b.Account, b.kind(), cmp.Or(orEmpty(b.Period), "forever"), b.Limit,
			bounded("at least", b.Spent, b.UnpricedLives), b.Reserved, bounded("at most", left, b.UnpricedLives), b.Currency, resets})
	}
	if err := columns(w, 4, rows); err != nil {
		return err
	}
	for _, b := range list {
		if err := b.printUnpriced(w); err != nil {
			return err
		}
	}
	return nil
}

func (b budgetView) printUnpriced(w io.Writer) error {
	return printUnpriced(w, "The budget "+b.Name+" of "+b.Account, b.UnpricedLives)
}

// bounded marks amount as a bound if it leaves lives out.
func bounded(how, amount string, lives int64) string {
	if lives == 0 {
		return amount
	}
	return how + " " + amount
}

// printUnpriced prints how many lives the amounts leave out.
func printUnpriced(w io.Writer, of string, lives int64) error {
	if lives == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s leaves out charges at an unknown price, in %s: see `sandboxer ledger usage`.\n", of,
		count(lives, "life", "lives"))
	return err
}
