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
	var ask bool
	c := &cobra.Command{
		Use:   "quote PROFILE",
		Short: "Show what a sandbox would cost, where it would run, and why not elsewhere",
		Long: `Resolves the profile, checks every place and prices them all. The expected duration
is --expect, else the median of the account's past sandboxes of the profile, else
the whole ttl. It creates and writes nothing, and dials nothing without --ask.

--ask also asks configured places that can estimate what they expect for the same
duration, and shows it beside sandboxer's estimate. Each has ten seconds; a place that
does not answer is only reported.`,
		Example: `  sandboxer quote profile.quickstart --ttl 2h
  sandboxer quote profile.quickstart --expect 20m
  sandboxer quote profile.compose-e2e --input repo=https://example.com/app.git --input retries:=3`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			var err error
			if req.Inputs, err = parseInputs(inputs); err != nil {
				return err
			}
			req.Profile = prefixed("profile.", given[0])
			return a.withEngine(func(e *engine.Engine) error {
				o := engine.QuoteOptions{History: true, Ask: ask}
				if expect != "" {
					if o.Expected, err = engine.ParseDuration(expect); err != nil {
						return err
					}
				}
				q, err := e.Quote(c.Context(), req, o)
				if err != nil {
					return err
				}
				if ask && len(q.Foretold) == 0 {
					a.say("note: none of the places that could run it gives estimates")
				}
				return a.show(viewOfQuote(q), func(w io.Writer) error { return a.printQuote(w, q) })
			})
		},
	}
	f := c.Flags()
	f.StringVar(&req.TTL, "ttl", "", "`duration` such as 90s, 2h, 1d (default: the profile's)")
	f.StringVar(&expect, "expect", "", "expected `duration`")
	f.BoolVar(&ask, "ask", false, "ask places for their own estimates")
	f.StringVar(&req.Billing, "billing", "", "who pays the vendor, `platform` or byok (your own key)")
	f.StringArrayVar(&req.Hosts, "host", nil, "`name` of a registered host; repeatable, in order of preference")
	f.StringArrayVar(&inputs, "input", nil, "profile input, `key=text` or key:=json; repeatable")
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
