package cli

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (a *app) quoteCommand() *cobra.Command {
	var req engine.Request
	var inputs []string
	var expect string
	c := &cobra.Command{
		Use:   "quote PROFILE",
		Short: "What a sandbox would cost, where it would run, and why not elsewhere",
		Long: `Resolves the profile, asks every place whether it fits, and prices them all.
How long it will probably run is the median of the account's earlier sandboxes
of the profile, unless --expect says so; before there are any, the whole ttl.
Nothing is made, dialled or written.`,
		Example: `  sandboxer quote profile.quickstart --ttl 2h
  sandboxer quote profile.quickstart --expect 20m
  sandboxer quote profile.compose-e2e --input repo=https://example.com/app.git --input retries:=3`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			var err error
			if req.Inputs, err = parseInputs(inputs); err != nil {
				return err
			}
			req.Profile = given[0]
			return a.withEngine(func(e *engine.Engine) error {
				o := engine.QuoteOptions{History: true}
				if expect != "" {
					if o.Expected, err = engine.ParseDuration(expect); err != nil {
						return err
					}
				}
				q, err := e.Quote(c.Context(), req, o)
				if err != nil {
					return err
				}
				return a.show(viewOfQuote(q), func(w io.Writer) error { return a.printQuote(w, q) })
			})
		},
	}
	f := c.Flags()
	f.StringVar(&req.TTL, "ttl", "", "`duration` such as 90s, 2h, 1d (default: the profile's)")
	f.StringVar(&expect, "expect", "", "how long it will probably run, a `duration`")
	f.StringVar(&req.Billing, "billing", "", "who pays a vendor, `platform` or byok (your own key)")
	f.StringArrayVar(&req.Hosts, "host", nil, "`name` of a registered host; repeat it, in order of preference")
	f.StringArrayVar(&inputs, "input", nil, "profile input, `key=text` or key:=json; repeat it")
	f.StringVar(&req.MaxCost, "max-cost", "", "refuse above this `amount`, such as \"1.00 USD\"")
	return c
}

// parseInputs reads key=text and key:=json.
func parseInputs(list []string) (map[string]any, error) {
	out := make(map[string]any, len(list))
	for _, s := range list {
		k, text, err := pair("input", s)
		if err != nil {
			return nil, err
		}
		var v any = text
		if name, typed := strings.CutSuffix(k, ":"); typed {
			k = name
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return nil, extensions.Errorf(extensions.KindInvalid, "--input %s:=%s is not JSON: %w", k, text, err).
					WithRemedy("write %s=… for plain text", k)
			}
		}
		if _, twice := out[k]; twice {
			return nil, extensions.Errorf(extensions.KindInvalid, "--input names %q twice", k)
		}
		out[k] = v
	}
	return out, nil
}
