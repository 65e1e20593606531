package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (a *app) pricesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "prices [EXTENSION]",
		Short: "List the catalog's prices with their dates and confidence",
		Long: `Prints every price list of the catalog, including built-in ones of vendors without
an extension in this build. It contacts no place and writes nothing.`,
		Example: `  sandboxer prices
  sandboxer prices e2b`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				lists, err := pricesOf(e.Prices(), strings.Join(given, ""))
				if err != nil {
					return err
				}
				return a.show(lists, func(w io.Writer) error { return printPrices(w, lists) })
			})
		},
	}
}

// pricesOf selects price lists by extension, a vendor's handler or a list's id.
func pricesOf(all []engine.PriceList, name string) ([]engine.PriceList, error) {
	var names []string
	out := slices.DeleteFunc(slices.Clone(all), func(l engine.PriceList) bool {
		if !l.Double {
			names = append(names, cmp.Or(l.Extension, l.Handler))
		}
		if name == "" {
			return l.Double
		}
		return l.ID != name && l.Extension != name && l.Handler != name && !slices.Contains(l.Bindings, name)
	})
	if len(out) == 0 && name != "" {
		return nil, extensions.Errorf(extensions.KindNotFound, "the catalog has no price list for %q", extensions.Clean(name, 80)).
			WithRemedy("use one of %s; a place of your own has its cost in the host or the binding", strings.Join(names, ", "))
	}
	return out, nil
}

func printPrices(w io.Writer, lists []engine.PriceList) error {
	rows := [][]string{{"FOR", "COMPONENT", "PRICE", "PER", "AS OF", "CONFIDENCE", "NOTE"}}
	for _, l := range lists {
		for _, p := range l.Components {
			price, per := l.Price(p)
			rows = append(rows, []string{cmp.Or(l.Extension, l.Handler), l.Covers(p), price, per, l.AsOf,
				string(cmp.Or(p.Confidence, l.Confidence)), strings.Join(l.Terms(p), ", ")})
		}
	}
	if err := grid(w, rows); err != nil {
		return err
	}
	for _, l := range lists {
		if err := printBook(w, l); err != nil {
			return err
		}
	}
	return nil
}

func printBook(w io.Writer, l engine.PriceList) error {
	state := "unused: no extension has this handler"
	if len(l.Bindings) > 0 {
		state = "prices " + strings.Join(l.Bindings, ", ")
	}
	memory := ""
	if l.MemoryMBPerCPU > 0 {
		memory = fmt.Sprintf("at least %d MiB per vCPU, charged even if you ask for less", l.MemoryMBPerCPU)
	}
	lines := [][2]string{
		{"source", l.Source},
		{"billing", l.Billing + ": " + l.Billed},
		{"memory", memory},
		{"paused", l.Paused},
		{"here", state},
		{"file", l.Where},
		{"STALE", l.Stale},
		{"what to do", l.Remedy},
	}
	for _, n := range l.Notes {
		lines = append(lines, [2]string{"note", n})
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", l.ID); err != nil {
		return err
	}
	for i := range lines {
		lines[i][0] = "  " + lines[i][0]
	}
	return facts(w, lines)
}
