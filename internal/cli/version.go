package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

type versionView struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v := versionView{a.version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return a.show(v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "sandboxer %s (%s, %s)\n", v.Version, v.Go, v.Platform)
				return err
			})
		},
	}
}
