package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type problemView struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Notice  bool   `json:"notice"`
}

func (a *app) profileCommand() *cobra.Command {
	return group("profile", "List, show, write and check profiles", a.profileListCommand(), a.profileShowCommand(), a.profileInitCommand(),
		a.profileExportCommand(), a.profileValidateCommand())
}

func (a *app) profileListCommand() *cobra.Command {
	return a.watched(&cobra.Command{
		Use:   "list",
		Short: "List the catalog's profiles with their inputs (* = required) and labels; routing ignores the labels",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				list, err := e.Profiles()
				if err != nil {
					return err
				}
				return a.show(list, func(w io.Writer) error { return printProfiles(w, list) })
			})
		},
	})
}

func printProfiles(w io.Writer, list []engine.ProfileView) error {
	rows := [][]string{{"PROFILE", "VERSION", "EXTENSION", "COST CLASS", "LATENCY CLASS", "INPUTS"}}
	for _, p := range list {
		inputs := make([]string, len(p.Inputs))
		for i, in := range p.Inputs {
			if inputs[i] = in.Name; in.Required {
				inputs[i] += "*"
			}
		}
		rows = append(rows, []string{p.ID, p.Version, cmp.Or(p.Extension, "any"), p.CostClass, p.LatencyClass, strings.Join(inputs, " ")})
	}
	return grid(w, rows)
}

func (a *app) profileValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate PATH",
		Short: "Check a profile or a catalog folder and list every mistake with its line",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			problems, err := engine.ValidateProfiles(given[0], a.exts)
			if err != nil {
				return err
			}
			views := make([]problemView, 0, len(problems))
			mistakes := 0
			for _, p := range problems {
				if !p.Notice {
					mistakes++
				}
				views = append(views, problemView{p.File, p.Line, p.Column, p.Msg, p.Notice})
			}
			err = a.show(views, func(w io.Writer) error { return printProblems(w, given[0], views, mistakes) })
			if err == nil && mistakes > 0 {
				err = extensions.Errorf(extensions.KindInvalid, "%s: %d mistake(s)", given[0], mistakes).
					WithRemedy("correct these and validate again")
			}
			return err
		},
	}
}

func printProblems(w io.Writer, path string, list []problemView, mistakes int) error {
	for _, p := range list {
		place := p.File
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
		}
		if p.Notice {
			place += ": note"
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", place, p.Message); err != nil {
			return err
		}
	}
	if mistakes > 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s is valid.\n", path)
	return err
}
