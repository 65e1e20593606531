package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func (a *app) pauseCommand() *cobra.Command {
	return a.modeCommand("pause", "Keep a sandbox without running it; its deadline stays", engine.Paused, "paused")
}

func (a *app) resumeCommand() *cobra.Command {
	return a.modeCommand("resume", "Run a paused sandbox again, from where it stopped", engine.Running, "running")
}

func (a *app) modeCommand(name, short string, mode engine.Mode, done string) *cobra.Command {
	return &cobra.Command{
		Use:   name + " ID|NAME",
		Short: short,
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				known, err := a.find(c.Context(), e, given[0])
				if err != nil {
					return err
				}
				ctx, shown := a.working(c.Context(), strings.ToUpper(name[:1])+name[1:]+" "+string(known.ID))
				s, err := e.SetMode(ctx, known.Receipt, mode, a.notify)
				shown()
				if err != nil {
					return err
				}
				v := viewOf(s)
				return a.show(v, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s is %s.\n", s.ID, done)
					return err
				})
			})
		},
	}
}
