package cli

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

type balanceView struct {
	Account       string        `json:"account"`
	Org           string        `json:"org"`
	Workspace     string        `json:"workspace"`
	LiveSandboxes int64         `json:"live_sandboxes"`
	Wallets       []walletView  `json:"wallets"`
	Budgets       []budgetView  `json:"budgets"`
	Ceilings      []ceilingView `json:"ceilings"`
}

type ceilingView struct {
	Source   string     `json:"source"`
	Scope    string     `json:"scope"`
	Currency *string    `json:"currency"` // null: counts sandboxes
	Metered  bool       `json:"metered"`
	Limit    string     `json:"limit"`
	Used     string     `json:"used"`
	Per      string     `json:"per"`
	Full     bool       `json:"full"`
	Next     *time.Time `json:"next"`
}

type walletView struct {
	Currency   string `json:"currency"`
	Granted    string `json:"granted"`
	Spent      string `json:"spent"`
	Reserved   string `json:"reserved"`
	Available  string `json:"available"`
	Receivable string `json:"receivable"`
	// UnpricedLives counts the lives that none of the amounts include.
	UnpricedLives int64 `json:"unpriced_lives"`
}

type grantView struct {
	Org    string     `json:"org"`
	Amount string     `json:"amount"`
	Key    string     `json:"key"`
	Wallet walletView `json:"wallet"`
}

func viewOfWallet(w engine.Wallet) walletView {
	return walletView{Currency: w.Currency, Granted: w.Granted, Spent: w.Spent, Reserved: w.Reserved, Available: w.Available,
		Receivable: w.Owed, UnpricedLives: w.Unpriced}
}

func (a *app) ledgerBalanceCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "balance",
		Short: "Show the account's credit, budgets and ceilings",
		Long: `Shows the wallet of the account's organization and the budgets that limit the
account. Granted is all credit so far. Reserved is on hold for live sandboxes, up
to the most they can cost; the unused part comes back. Available is granted minus
spent and reserved. Owed (receivable) is usage beyond the wallet's credit: a wallet
never goes below zero, and no usage is lost. The next grant and released holds pay
the debt first. Ceilings limit how fast you create sandboxes or spend money, and
show when the next create fits.`,
		Example: "  sandboxer ledger balance --account acme/web",
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				acc, err := e.AccountView(c.Context())
				if err != nil {
					return err
				}
				v := balanceView{Account: acc.Account, Org: acc.Org, Workspace: acc.Workspace, LiveSandboxes: acc.Live,
					Wallets: []walletView{}, Budgets: budgetViews(acc.Budgets)}
				v.Ceilings = viewsOfCeilings(acc.Ceilings)
				for _, w := range acc.Wallets {
					v.Wallets = append(v.Wallets, viewOfWallet(w))
				}
				return a.show(v, func(w io.Writer) error { return printBalance(w, v, time.Now()) })
			})
		},
	}
}

func printBalance(w io.Writer, v balanceView, now time.Time) error {
	if _, err := fmt.Fprintf(w, "Account %s: %s.\n\n", v.Account, count(v.LiveSandboxes, "live sandbox", "live sandboxes")); err != nil {
		return err
	}
	if len(v.Wallets) == 0 {
		_, err := fmt.Fprintf(w, "%[1]s has no wallet yet, so no credit is used.\n"+
			"  To pay from credit: sandboxer ledger grant %[1]s \"100 USD\"\n", v.Org)
		if err != nil {
			return err
		}
	} else if err := printWallets(w, v.Org, v.Wallets); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := printBudgets(w, v.Budgets, now); err != nil || len(v.Ceilings) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return printCeilings(w, v.Ceilings, now)
}

func viewsOfCeilings(list []engine.CeilingView) []ceilingView {
	out := []ceilingView{}
	for _, c := range list {
		v := ceilingView{Source: c.Source, Scope: c.Scope, Currency: known(c.Currency), Metered: c.Metered, Limit: c.Limit, Used: c.Used,
			Per: c.Per, Full: c.Full}
		if !c.Next.IsZero() {
			v.Next = &c.Next
		}
		out = append(out, v)
	}
	return out
}

func printCeilings(w io.Writer, list []ceilingView, now time.Time) error {
	rows := [][]string{{"CEILING OF", "FOR", "COUNTS", "USED", "LIMIT", "PER", "NEXT"}}
	for _, c := range list {
		counts, next := cmp.Or(orEmpty(c.Currency), "creates"), "now"
		switch {
		case c.Next != nil:
			next = relative(*c.Next, now)
		case c.Full:
			next = "when a sandbox ends"
		}
		rows = append(rows, []string{c.Source, c.Scope, counts, c.Used, c.Limit, c.Per, next})
	}
	return columns(w, 3, rows)
}

func printWallets(w io.Writer, org string, list []walletView) error {
	rows := [][]string{{"WALLET", "GRANTED", "SPENT", "RESERVED", "AVAILABLE", "OWED"}}
	for _, x := range list {
		rows = append(rows, []string{org + " " + x.Currency, x.Granted, bounded("at least", x.Spent, x.UnpricedLives), x.Reserved,
			bounded("at most", x.Available, x.UnpricedLives), x.Receivable})
	}
	if err := columns(w, 1, rows); err != nil {
		return err
	}
	for _, x := range list {
		if err := x.printUnpriced(w, org); err != nil {
			return err
		}
	}
	return nil
}

func (x walletView) printUnpriced(w io.Writer, org string) error {
	return printUnpriced(w, "The wallet "+org+" "+x.Currency, x.UnpricedLives)
}

func (a *app) ledgerGrantCommand() *cobra.Command {
	var key, note string
	c := &cobra.Command{
		Use:   "grant ORG AMOUNT",
		Short: "Add credit to an organization's wallet",
		Long: `Adds credit to the wallet of an organization, for all of its workspaces. Repeating
a grant with the same key changes nothing, so you can repeat one whose answer was
lost. A key cannot be used for a different grant.`,
		Example: `  sandboxer ledger grant acme "100 USD" --note "January" --key invoice-2026-01`,
		Args:    args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				wallet, used, err := e.GrantCredit(c.Context(), given[0], given[1], key, note)
				if err != nil {
					if used != "" && key == "" {
						a.say("note: the key of this grant is %s; repeat with --key %s", used, used)
					}
					return err
				}
				v := grantView{Org: given[0], Amount: given[1], Key: used, Wallet: viewOfWallet(wallet)}
				return a.show(v, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "Granted %s to %s (key %s). Available: %s %s.\n", v.Amount, v.Org, v.Key,
						bounded("at most", v.Wallet.Available, v.Wallet.UnpricedLives), v.Wallet.Currency)
					if err != nil {
						return err
					}
					return v.Wallet.printUnpriced(w, v.Org)
				})
			})
		},
	}
	c.Flags().StringVar(&key, "key", "", "`key` that makes repeats harmless (default: a random one, printed)")
	c.Flags().StringVar(&note, "note", "", "`text` kept with the grant's event")
	return c
}
