package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type verifyView struct {
	Ledger    string   `json:"ledger"`
	Events    int64    `json:"events"`
	Sandboxes int64    `json:"sandboxes"`
	Heads     []string `json:"heads"`
	Findings  []string `json:"findings"`
	Notes     []string `json:"notes"`
}

// evidence names what `ledger verify` compares the ledger with.
type evidence struct{ pins, states, exports []string }

func (a *app) ledgerVerifyCommand() *cobra.Command {
	var ev evidence
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check the hash chain of events and the ledger's invariants",
		Long: `Checks that the chain of events is complete, that every row matches its last event, and that the accounts add up.

A chain alone cannot show that its end was cut off or that all of it was rewritten. Heads kept elsewhere can: from an
earlier check (--pin), in the receipts of a Terraform state (--receipts), or in exported events (--events), which are
also checked by themselves. It writes nothing.`,
		Example: `  sandboxer ledger verify --format json | jq -r '.heads[]' > heads
  sandboxer ledger verify --pin "$(cat heads)"
  sandboxer ledger verify --receipts terraform.tfstate --events events.ndjson`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			verify := func(e *engine.Engine) error { return a.verifyLedger(c, e, ev) }
			if len(ev.exports) > 0 { // exports can be checked without their ledger
				return a.withEngine(verify)
			}
			return a.withLedger(c.Context(), verify)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&ev.pins, "pin", nil, "`head` of an earlier check, [LEDGER:]STREAM:SEQ:HASH; repeatable")
	f.StringArrayVar(&ev.states, "receipts", nil, "Terraform state `file` whose receipts pin heads; repeatable")
	f.StringArrayVar(&ev.exports, "events", nil, "`file` of exported events, one per line; repeatable")
	return c
}

func (a *app) verifyLedger(c *cobra.Command, e *engine.Engine, named evidence) error {
	ev := engine.Evidence{Pins: named.pins, Exports: map[string]io.Reader{}}
	for _, name := range named.states {
		receipts, err := receiptsIn(name)
		if err != nil {
			return err
		}
		if len(receipts) == 0 {
			return extensions.Errorf(extensions.KindInvalid, "%s has no sandbox of this provider, so there is nothing to verify", name).
				WithRemedy("give the state of a configuration that has one, written with `terraform state pull > FILE`")
		}
		ev.Receipts = append(ev.Receipts, receipts...)
	}
	for _, name := range named.exports {
		file, err := os.Open(name)
		if err != nil {
			return extensions.Errorf(extensions.KindInvalid, "reading exported events: %w",
				err).WithRemedy("give a file written by `sandboxer ledger export`")
		}
		defer func() { _ = file.Close() }()
		ev.Exports[name] = file
	}
	got, err := e.Verify(c.Context(), ev)
	if err != nil {
		return err
	}
	v := verifyView{got.Ledger, got.Events, got.Sandboxes, list(got.Heads), list(got.Findings), list(got.Notes)}
	if err := a.show(v, func(w io.Writer) error { return printVerified(w, v) }); err != nil {
		return err
	}
	if n := len(got.Findings); n > 0 {
		return extensions.Errorf(extensions.KindInternal, "the ledger has %d finding(s)", n).
			WithRemedy("copy the ledger before anything else writes to it")
	}
	return nil
}

func printVerified(w io.Writer, v verifyView) error {
	for _, text := range append(v.Findings, v.Notes...) {
		if _, err := fmt.Fprintln(w, extensions.Clean(text, 2000)); err != nil {
			return err
		}
	}
	sound := fmt.Sprintf("The ledger is sound: %d events, the chain is complete.", v.Events)
	if v.Ledger == "" {
		sound = "There is no ledger to check."
	}
	if len(v.Findings) == 0 {
		if _, err := fmt.Fprintln(w, sound); err != nil {
			return err
		}
	}
	for _, head := range v.Heads {
		if _, err := fmt.Fprintf(w, "head %s\n", extensions.Clean(head, 500)); err != nil {
			return err
		}
	}
	return nil
}
