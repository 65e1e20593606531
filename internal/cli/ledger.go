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

type eventView struct {
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"at"`
	Type string          `json:"type"`
	ID   string          `json:"id,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

func (a *app) ledgerCommand() *cobra.Command {
	return group("ledger", "Manage credit and budgets; show usage and events", a.ledgerBalanceCommand(), a.ledgerGrantCommand(),
		a.ledgerBudgetCommand(),
		a.ledgerUsageCommand(), a.ledgerExportCommand(), a.ledgerVerifyCommand(), a.ledgerEventsCommand())
}

func (a *app) ledgerEventsCommand() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "events [ID]",
		Short: "List events, oldest first",
		Args:  args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			if limit <= 0 {
				return extensions.Errorf(extensions.KindInvalid, "--limit %d is not positive", limit)
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
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
