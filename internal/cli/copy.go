package cli

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// stream stands for a tar stream on standard input or output.
const stream = "-"

func (a *app) sandboxCopyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cp SRC DST",
		Short: "Copy files and folders into a sandbox or out of it",
		Long: `Copies a file, or a folder with everything in it. One side is ID:PATH or NAME:PATH, the
other a path on this machine. PATH is relative to the workspace unless it starts with
"/". As with cp -r, the copy goes into DST if DST is a folder or ends in "/", and becomes
DST otherwise; SRC/. copies only the content of SRC. Links are copied as they are.

"-" is a tar stream: as SRC from standard input, extracted below PATH; as DST to
standard output. Write a local name with a colon as ./name.`,
		Example: `  sandboxer sandbox cp ./app e2e-main:
  sandboxer sandbox cp e2e-main:report.xml .
  tar c src | sandboxer sandbox cp - e2e-main:/srv
  sandboxer sandbox cp e2e-main:/var/log - | tar t`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, given []string) error {
			from, to := endOf(given[0]), endOf(given[1])
			if (from.sandbox == "") == (to.sandbox == "") {
				return extensions.Errorf(extensions.KindInvalid, "cp copies between this machine and one sandbox").
					WithRemedy("write one side as ID:PATH or NAME:PATH; a local name with a colon is ./name")
			}
			if to.path == stream && to.sandbox == "" && a.screen != nil {
				return extensions.Errorf(extensions.KindInvalid, "a tar stream is not for a terminal").
					WithRemedy("send the output to a file or to `tar`")
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error { return a.copy(c.Context(), e, from, to) })
		},
	}
}

// end is one side of a copy; sandbox is "" for this machine.
type end struct{ sandbox, path string }

func endOf(s string) end {
	local := s == stream || strings.HasPrefix(s, ".") || filepath.IsAbs(s) || strings.HasPrefix(s, "/")
	sandbox, path, inside := strings.Cut(s, ":")
	if local || !inside || sandbox == "" || runtime.GOOS == "windows" && len(sandbox) == 1 {
		return end{"", s}
	}
	return end{sandbox, path}
}

func (a *app) copy(ctx context.Context, e *engine.Engine, from, to end) error {
	known, err := a.find(ctx, e, from.sandbox+to.sandbox)
	if err != nil {
		return err
	}
	ctx, done := a.working(ctx, "Copying")
	defer done()
	switch {
	case from.path == stream && from.sandbox == "":
		return e.Upload(ctx, known.Receipt, to.path, a.in)
	case to.path == stream && to.sandbox == "":
		return e.Download(ctx, known.Receipt, from.path, a.out)
	case to.sandbox != "":
		return e.CopyIn(ctx, known.Receipt, from.path, to.path, a.notify)
	}
	return e.CopyOut(ctx, known.Receipt, from.path, to.path, a.notify)
}
