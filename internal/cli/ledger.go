package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type verifyView struct {
	Events   int64    `json:"events"`
	Findings []string `json:"findings"`
}

type eventView struct {
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"at"`
	Type string          `json:"type"`
	ID   string          `json:"id,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

func (a *app) ledgerCommand() *cobra.Command {
	return group("ledger", "Credit, budgets, usage and the record of it all", a.ledgerBalanceCommand(), a.ledgerGrantCommand(), a.ledgerBudgetCommand(),
		a.ledgerUsageCommand(), a.ledgerVerifyCommand(), a.ledgerEventsCommand())
}

func (a *app) ledgerVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the hash chain of events and the ledger's invariants",
		Args:  args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				n, findings, err := e.VerifyLedger(c.Context())
				if err != nil {
					return err
				}
				v := verifyView{n, list(findings)}
				if err := a.show(v, func(w io.Writer) error { return printVerified(w, v) }); err != nil {
					return err
				}
				if len(findings) > 0 {
					return extensions.Errorf(extensions.KindInternal, "the ledger has %d finding(s)", len(findings)).
						WithRemedy("keep a copy of the ledger before anything else writes to it")
				}
				return nil
			})
		},
	}
}

func printVerified(w io.Writer, v verifyView) error {
	if len(v.Findings) == 0 {
		_, err := fmt.Fprintf(w, "The ledger is sound: %d events, the chain is whole.\n", v.Events)
		return err
	}
	_, err := fmt.Fprintf(w, "%s\n", strings.Join(v.Findings, "\n"))
	return err
}

func (a *app) ledgerEventsCommand() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "events [ID]",
		Short: "What happened, oldest first",
		Args:  args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			if limit <= 0 {
				return extensions.Errorf(extensions.KindInvalid, "--limit %d is not above zero", limit)
			}
			return a.withEngine(func(e *engine.Engine) error {
				events, err := e.Events(c.Context(), strings.Join(given, ""), limit)
				if err != nil {
					return err
				}
				views := make([]eventView, 0, len(events))
				for _, ev := range events {
					views = append(views, eventView{ev.Seq, ev.At.UTC(), ev.Type, ev.ID, json.RawMessage(ev.Data)})
				}
				return a.show(views, func(w io.Writer) error { return printEvents(w, views) })
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 50, "the newest `n`")
	return c
}

func printEvents(w io.Writer, list []eventView) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "The ledger has no events.")
		return err
	}
	rows := [][]string{{"SEQ", "AT", "TYPE", "ID"}}
	for _, e := range list {
		rows = append(rows, []string{strconv.FormatInt(e.Seq, 10), stamp(e.At), e.Type, e.ID})
	}
	return grid(w, rows)
}
