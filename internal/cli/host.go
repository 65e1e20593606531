package cli

import (
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type hostView struct {
	Name  string               `json:"name"`
	Local bool                 `json:"local"`
	Facts extensions.HostFacts `json:"facts"`
}

func (a *app) hostCommand() *cobra.Command {
	return group("host", "Check registered hosts", a.hostCheckCommand())
}

func (a *app) hostCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check NAME",
		Short: "Probe a host registered by sandboxer_host: what it offers and what it lacks",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				h, err := e.LookupHost(c.Context(), given[0])
				if err != nil {
					return err
				}
				found, err := e.GetHost(c.Context(), h)
				if err != nil {
					return err
				}
				v := hostView{found.Host.Name, found.Host.Local, found.Facts}
				return a.show(v, func(w io.Writer) error { return printHost(w, v) })
			})
		},
	}
}

func printHost(w io.Writer, v hostView) error {
	levels := make([]string, 0, len(v.Facts.Isolation))
	for _, l := range v.Facts.Isolation {
		levels = append(levels, string(l))
	}
	lines := [][2]string{
		{"name", v.Name},
		{"system", v.Facts.OS + "/" + v.Facts.Arch},
		{"cpus", strconv.FormatInt(v.Facts.CPUs, 10)},
		{"memory", strconv.FormatInt(v.Facts.MemoryMB, 10) + " MiB"},
		{"isolation", strings.Join(levels, ", ")},
		{"docker", v.Facts.Docker},
		{"compose", v.Facts.Compose},
	}
	for _, n := range v.Facts.Notes {
		lines = append(lines, [2]string{"note", n})
	}
	return facts(w, lines)
}
