package cli

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxURLText bounds an address or a header for the terminal, in runes.
const maxURLText = 8 << 10

type urlView struct {
	Address   string      `json:"address"`
	Header    *headerView `json:"header,omitempty"`
	ExpiresAt time.Time   `json:"expires_at,omitzero"`
}

type headerView struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (a *app) sandboxURLCommand() *cobra.Command {
	var reveal bool
	c := &cobra.Command{
		Use:   "url ID|NAME PORT",
		Short: "Show the place's address for a port inside",
		Long: `Prints the place's own HTTP address for a port inside, and how long it is valid. If
requests need a secret header, only --show-header prints its value. If the place has no
such addresses, forward the port instead.`,
		Example: `  sandboxer sandbox url web 8080
  sandboxer sandbox url web 8080 --show-header --format json`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, given []string) error {
			port, err := strconv.Atoi(given[1])
			if err != nil {
				return extensions.Errorf(extensions.KindInvalid, "%q is not a port", extensions.Clean(given[1], 40)).
					WithRemedy("give the port inside, such as 8080")
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				known, err := a.find(c.Context(), e, given[0])
				if err != nil {
					return err
				}
				u, err := e.URL(c.Context(), known.Receipt, port)
				if err != nil {
					return err
				}
				v := urlViewOf(u, reveal)
				return a.show(v, func(w io.Writer) error { return printURL(w, v, time.Now()) })
			})
		},
	}
	c.Flags().BoolVar(&reveal, "show-header", false, "print the header's secret value")
	return c
}

func urlViewOf(u extensions.URL, reveal bool) urlView {
	v := urlView{Address: extensions.Clean(u.Address, maxURLText), ExpiresAt: u.ExpiresAt.UTC()}
	if u.Header.Name != "" {
		v.Header = &headerView{Name: extensions.Clean(u.Header.Name, maxURLText), Value: u.Header.Value.String()}
		if reveal {
			v.Header.Value = extensions.Clean(u.Header.Value.Reveal(), maxURLText)
		}
	}
	return v
}

func printURL(w io.Writer, v urlView, now time.Time) error {
	lines := "address  " + v.Address
	if v.Header != nil {
		lines += "\nheader   " + v.Header.Name + ": " + v.Header.Value
	}
	until := "with the sandbox"
	if !v.ExpiresAt.IsZero() {
		until = withRelative(v.ExpiresAt, now)
	}
	_, err := fmt.Fprintf(w, "%s\nends     %s\n", lines, until)
	return err
}
