package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func (a *app) extensionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "extension",
		Short: "Write an extension of your own",
		Args:  noSuchCommand,
		RunE:  showHelp,
	}
	c.AddCommand(a.extensionTestCommand())
	return c
}

type extensionTestView struct {
	Passed  int                  `json:"passed"`
	Failed  int                  `json:"failed"`
	Skipped int                  `json:"skipped"`
	Checks  []engine.CheckResult `json:"checks"`
}

func (a *app) extensionTestCommand() *cobra.Command {
	var t engine.ExtensionTest
	c := &cobra.Command{
		Use:   "test PROGRAM",
		Short: "Check that a program keeps the contract of extensions",
		Long: `Runs the conformance suite against a program for a binding of ext.command. Each promise
of its manifest is one check, which creates, uses and destroys sandboxes. A check that
only the program's place could set up, such as a lost connection, is skipped, with the
reason. Checks of files write below /tmp inside a sandbox. The exit code is 1 if a check
failed.`,
		Example: `  sandboxer extension test ./sandbox.py
  sandboxer extension test ./sandbox.py --manifest sandbox.yaml --check files --check core/find-finds`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, argv []string) error {
			t.Program = argv[0]
			results, err := t.Run(c.Context(), a.exts, func(r engine.CheckResult) {
				if a.global.format == formatTable {
					_ = printCheck(a.out, r) // what cannot be written is told at the end
				}
			})
			if err != nil {
				return err
			}
			v := extensionTestView{Checks: results}
			for _, r := range results {
				switch r.Outcome {
				case engine.CheckPassed:
					v.Passed++
				case engine.CheckFailed:
					v.Failed++
				case engine.CheckSkipped:
					v.Skipped++
				}
			}
			if err := a.show(v, func(w io.Writer) error { return printExtensionTest(w, v) }); err != nil {
				return err
			}
			if v.Failed > 0 {
				return exitCode(exitFailed)
			}
			return c.Context().Err()
		},
	}
	f := c.Flags()
	f.StringVar(&t.Manifest, "manifest", "", "manifest `file` of the program (default: PROGRAM with its suffix replaced by .yaml)")
	f.StringVar(&t.Settings, "settings", "", "the binding's settings, as YAML or JSON `text`")
	f.StringArrayVar(&t.Only, "check", nil, "run this `check` or group of checks only; repeatable")
	f.IntVar(&t.AtOnce, "parallel", 4, "`number` of checks that run at once")
	return c
}

// printCheck prints one result, with what the author needs to read below it.
func printCheck(w io.Writer, r engine.CheckResult) error {
	if _, err := fmt.Fprintf(w, "%-8s%s (%s)\n", r.Outcome, r.Name, r.Took.Round(10*time.Millisecond)); err != nil {
		return err
	}
	if r.Outcome == engine.CheckPassed {
		return nil
	}
	for _, said := range r.Said {
		if _, err := fmt.Fprintf(w, "        %s\n", strings.ReplaceAll(said, "\n", "\n        ")); err != nil {
			return err
		}
	}
	return nil
}

// printExtensionTest prints how many there were and, where the end is read, the names of those that failed.
func printExtensionTest(w io.Writer, v extensionTestView) error {
	if _, err := fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", v.Passed, v.Failed, v.Skipped); err != nil {
		return err
	}
	for _, r := range v.Checks {
		if r.Outcome == engine.CheckFailed {
			if _, err := fmt.Fprintf(w, "failed: %s\n", r.Name); err != nil {
				return err
			}
		}
	}
	return nil
}
