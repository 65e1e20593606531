package cli

import (
	"fmt"
	"io"

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
	return group("profile", "Check profiles", a.profileValidateCommand())
}

func (a *app) profileValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate PATH",
		Short: "Check a profile or a whole catalog folder; every mistake at once, with its place",
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
					WithRemedy("mend the places named above and validate again")
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
