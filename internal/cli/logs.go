package cli

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// logLine is one line of a log, or a piece of a line longer than maxLogLine.
type logLine struct {
	Line   string `json:"line"`             // without the line break
	Base64 string `json:"base64,omitempty"` // the exact bytes, if line cannot hold them
}

// maxLogLine bounds the buffer for an unfinished line, in bytes.
const maxLogLine = 64 << 10

func (a *app) sandboxLogsCommand() *cobra.Command {
	var req extensions.LogRequest
	c := &cobra.Command{
		Use:   "logs ID|NAME",
		Short: "Show the output of the sandbox's own processes",
		Long: `Prints the output of the sandbox's own processes unchanged. With --format json each
line is a JSON object, {"line": "…"}, or with "base64" if it is not UTF-8. YAML has the
same fields.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				known, err := a.find(c.Context(), e, given[0])
				if err != nil {
					return err
				}
				logs, err := e.Logs(c.Context(), known.Receipt, req)
				if err != nil {
					return err
				}
				if a.structured() {
					err = a.printLogLines(logs)
				} else {
					_, err = io.Copy(a.out, logs)
				}
				if c.Context().Err() != nil {
					err = nil // the user stopped following
				}
				return errors.Join(err, logs.Close())
			})
		},
	}
	c.Flags().BoolVarP(&req.Follow, "follow", "f", false, "follow until interrupted")
	c.Flags().IntVar(&req.Tail, "tail", 0, "only the last `n` lines (default: all kept lines)")
	c.Flags().StringVar(&req.Service, "service", "", "only this service")
	return c
}

func (a *app) printLogLines(logs io.Reader) error {
	in := bufio.NewReaderSize(logs, maxLogLine)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			text, _ := strings.CutSuffix(string(line), "\n")
			if err := a.encode(a.out, logLine{text, base64Of([]byte(text))}, ""); err != nil {
				return err
			}
		}
		switch {
		case err == nil || errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}
