package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// extensionView is the stable JSON form of an extension of the catalog.
type extensionView struct {
	ID        string             `json:"id"`
	Title     string             `json:"title"`
	Handler   string             `json:"handler"`
	Places    []extensions.Place `json:"places"`
	Routed    bool               `json:"routed"` // takes part in routing without a pin
	Region    string             `json:"region,omitempty"`
	Isolation []string           `json:"isolation_levels"`
	Egress    string             `json:"egress"`
	Expiry    string             `json:"expiry"`
	Pricing   string             `json:"pricing_model"`
	Powers    []extensions.Power `json:"powers"`
	Pools     []poolView         `json:"pools"`
}

// poolView is one place of an extension.
type poolView struct {
	Place     extensions.Place `json:"place"`
	Host      string           `json:"host,omitempty"`
	Priority  int64            `json:"priority"`
	Live      *int64           `json:"sandboxes"` // null: the ledger cannot be read
	Max       *int64           `json:"max_sandboxes"`
	Usable    *bool            `json:"usable"` // null: it was not asked
	Substrate string           `json:"substrate,omitempty"`
	Missing   []string         `json:"missing"`
	Remedy    string           `json:"remedy,omitempty"`
}

func (a *app) extensionsCommand() *cobra.Command {
	c := a.listsExtensions(&cobra.Command{Use: "extensions [EXTENSION]"})
	c.AddCommand(a.extensionsExportCommand())
	return c
}

// listsExtensions makes c list the extensions of the catalog.
func (a *app) listsExtensions(c *cobra.Command) *cobra.Command {
	var offline bool
	c.Short = "List where sandboxes can run, what each place offers, and what is missing to use it"
	c.Long = `Lists the extensions of the catalog with their places: this machine, the registered
hosts and the vendors' accounts. It asks each place that has its credentials what it
offers, for ten seconds at most, and writes nothing. Places with a higher priority are
preferred. The matrix shows what each extension can do.`
	c.Args = args(cobra.MaximumNArgs(1))
	c.RunE = func(c *cobra.Command, given []string) error {
		return a.withLedger(c.Context(), func(e *engine.Engine) error {
			ctx, done := a.working(c.Context(), "Asking the places")
			pools, err := e.Survey(ctx, !offline)
			done()
			views := extensionViews(e, pools)
			if len(given) == 1 {
				if views, err = oneOf(views, prefixed("ext.", given[0]), err); err != nil {
					return err
				}
			}
			if shown := a.show(views, func(w io.Writer) error { return printExtensions(w, views) }); err == nil {
				err = shown
			}
			return err
		})
	}
	c.Flags().BoolVar(&offline, "offline", false, "ask no place; show what the ledger knows")
	return a.watched(c)
}

func oneOf(views []extensionView, id string, err error) ([]extensionView, error) {
	var ids []string
	for _, v := range views {
		ids = append(ids, v.ID)
		if v.ID == id {
			return []extensionView{v}, err
		}
	}
	return nil, extensions.Errorf(extensions.KindNotFound, "the catalog has no extension %q", extensions.Clean(id, 80)).
		WithRemedy("use one of %s", strings.Join(ids, ", "))
}

func extensionViews(e *engine.Engine, pools []engine.Pool) []extensionView {
	views := []extensionView{}
	for _, p := range pools {
		b := p.Binding
		if n := len(views); n == 0 || views[n-1].ID != b.ID {
			d, c := b.Descriptor, b.Capabilities
			v := extensionView{ID: b.ID, Title: b.Title, Handler: b.Handler, Places: d.Places, Routed: e.TakesPart(b), Region: b.Region,
				Isolation: []string{}, Egress: string(c.Egress), Expiry: string(c.Expiry), Pricing: c.PricingModel,
				Powers: slices.Sorted(slices.Values(d.Powers)), Pools: []poolView{}}
			for _, l := range c.IsolationLevels {
				v.Isolation = append(v.Isolation, string(l))
			}
			views = append(views, v)
		}
		last := &views[len(views)-1]
		last.Pools = append(last.Pools, viewOfPool(p))
	}
	return views
}

func viewOfPool(p engine.Pool) poolView {
	v := poolView{Place: p.Place, Priority: p.Priority, Live: p.Live, Max: p.Max, Substrate: substrate(p.Facts), Missing: []string{}}
	if p.Host != nil {
		v.Host = p.Host.Name
	}
	usable := func(yes bool) { v.Usable = &yes }
	switch f := p.Facts; {
	case p.Lacks != "":
		usable(false)
		v.Missing, v.Remedy = []string{p.Lacks}, p.Help
	case p.Err != nil:
		usable(false)
		v.Missing, v.Remedy = []string{p.Err.Error()}, extensions.RemedyOf(p.Err)
	case f != nil && len(f.Unfit) > 0:
		usable(false)
		v.Missing = f.Unfit
	case f != nil:
		usable(true)
		v.Missing = list(f.Notes)
	case p.Asked:
		usable(true)
	}
	return v
}

// substrate says what sandboxes of a place run on.
func substrate(f *extensions.Facts) string {
	if f == nil || f.Machine == nil {
		return ""
	}
	m := f.Machine
	parts := []string{strings.Trim(m.OS+"/"+m.Arch, "/")}
	for _, has := range []struct {
		name, version string
	}{{"Docker ", m.Docker}, {"Compose ", m.Compose}} {
		if has.version != "" {
			parts = append(parts, has.name+has.version)
		}
	}
	if m.KVM {
		parts = append(parts, "KVM")
	}
	if m.GPU {
		parts = append(parts, "GPU")
	}
	return strings.Join(parts, ", ")
}

func (p poolView) name() string {
	switch {
	case p.Host != "":
		return p.Host
	case p.Place == extensions.PlaceMachine:
		return "this machine"
	}
	return string(p.Place)
}

func (p poolView) room() string {
	live, most := "?", "unlimited"
	if p.Live != nil {
		live = strconv.FormatInt(*p.Live, 10)
	}
	if p.Max != nil {
		most = strconv.FormatInt(*p.Max, 10)
	}
	return live + " of " + most
}

func (p poolView) usable() string {
	switch {
	case p.Usable == nil:
		return "not asked"
	case *p.Usable:
		return "yes"
	}
	return "no"
}

func printExtensions(w io.Writer, list []extensionView) error {
	rows := [][]string{wide(w, []string{"EXTENSION", "PLACE", "PRIORITY", "ROUTED", "USABLE", "ISOLATION", "SANDBOXES", "SUBSTRATE"},
		"EGRESS", "EXPIRY", "PRICING", "REGION")}
	var lacks []string
	for _, v := range list {
		for _, p := range v.Pools {
			routed := "if pinned"
			if v.Routed {
				routed = "yes"
			}
			rows = append(rows, wide(w, []string{v.ID, p.name(), strconv.FormatInt(p.Priority, 10), routed, p.usable(),
				strings.Join(v.Isolation, ", "), p.room(), p.Substrate}, v.Egress, v.Expiry, v.Pricing, cmp.Or(v.Region, "any")))
			for _, m := range p.Missing {
				lacks = append(lacks, "  "+v.ID+" at "+p.name()+": "+extensions.Clean(m, maxMissing))
			}
			if p.Remedy != "" {
				lacks = append(lacks, "    what to do: "+extensions.Clean(p.Remedy, maxMissing))
			}
		}
	}
	if err := grid(w, rows); err != nil {
		return err
	}
	if len(lacks) > 0 {
		if _, err := fmt.Fprintln(w, "\nMissing:\n"+wrapped(w, lacks)); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return grid(w, matrix(list))
}

const maxMissing = 600 // characters

// matrix has a row for each power that any extension declares.
func matrix(list []extensionView) [][]string {
	head := []string{"POWER"}
	var powers []extensions.Power
	for _, v := range list {
		head = append(head, v.ID)
		powers = append(powers, v.Powers...)
	}
	slices.Sort(powers)
	rows := [][]string{head}
	for _, p := range slices.Compact(powers) {
		row := []string{string(p)}
		for _, v := range list {
			has := "-"
			if slices.Contains(v.Powers, p) {
				has = "yes"
			}
			row = append(row, has)
		}
		rows = append(rows, row)
	}
	return rows
}
