package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// logLine is one line of a log, or a piece of one that is longer than maxLogLine.
type logLine struct {
	Line   string `json:"line"`             // without its end of line
	Base64 string `json:"base64,omitempty"` // the bytes themselves, where line cannot tell them
}

// maxLogLine bounds what is held of a line that does not end, in bytes.
const maxLogLine = 64 << 10

func (a *app) sandboxLogsCommand() *cobra.Command {
	var req extensions.LogRequest
	c := &cobra.Command{
		Use:   "logs ID|NAME",
		Short: "What the sandbox's own processes printed",
		Long: `What the sandbox's own processes printed, as they printed it. With --format json
each line is a JSON object: {"line": "…"}, and "base64" where it is not UTF-8.`,
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
				if a.global.format == formatJSON {
					err = printLogLines(a.out, logs)
				} else {
					_, err = io.Copy(a.out, logs)
				}
				if c.Context().Err() != nil {
					err = nil // the person stopped following
				}
				return errors.Join(err, logs.Close())
			})
		},
	}
	c.Flags().BoolVarP(&req.Follow, "follow", "f", false, "go on until interrupted")
	c.Flags().IntVar(&req.Tail, "tail", 0, "only the last `n` lines (default: all that is kept)")
	c.Flags().StringVar(&req.Service, "service", "", "only this service")
	return c
}

func printLogLines(w io.Writer, logs io.Reader) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	in := bufio.NewReaderSize(logs, maxLogLine)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			text, _ := strings.CutSuffix(string(line), "\n")
			if err := enc.Encode(logLine{text, base64Of([]byte(text))}); err != nil {
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
