package account

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Parts of a price list that the layers above show.
type (
	// PriceBook is a price list as written.
	PriceBook = meter.Book
	// BookPrice is one price of a list.
	BookPrice = meter.BookPrice
)

// PriceList is a price book of the catalog as written, with what it prices here.
type PriceList struct {
	PriceBook
	Where    string   `json:"where"`           // file and line
	Bindings []string `json:"bindings"`        // bindings of this catalog that it prices; none for a vendor that this build lacks
	Stale    string   `json:"stale,omitempty"` // why it is refused now; "" = valid
	// Billed and Paused say in words what is counted, and what a paused sandbox costs.
	Billed string `json:"billed"`
	Paused string `json:"paused"`
	Remedy string `json:"remedy,omitempty"`
	Double bool   `json:"-"` // of a test double: shown to callers who name it
}

// Prices lists the catalog's price books by id. It reads no ledger.
func (a *Account) Prices() []PriceList {
	out := make([]PriceList, 0, len(a.catalog.Books))
	for i := range a.catalog.Books {
		b := &a.catalog.Books[i]
		l := PriceList{PriceBook: *b, Where: b.Where, Bindings: []string{}, Billed: billed(b), Paused: paused(b)}
		for _, bound := range a.catalog.Bindings {
			if a.catalog.Book(bound.ID) == b {
				l.Bindings = append(l.Bindings, bound.ID)
				l.Double = bound.Descriptor.NamedOnly
			}
		}
		if err := b.Fresh(a.books.Now()); err != nil {
			l.Stale, l.Remedy = err.Error(), extensions.RemedyOf(err)
		}
		out = append(out, l)
	}
	return out
}

func billed(b *meter.Book) string {
	switch {
	case b.Billing == extensions.BillingActiveCPU:
		return "used CPU time, and the other requested resources while it runs"
	case b.Billing == extensions.BillingInvocation:
		return "each creation"
	case b.Billing == extensions.BillingFixed:
		return "the time it exists, running or paused"
	case b.Counts == meter.CountsLarger:
		return "the time it runs, by the larger of request and use"
	}
	return "the time it runs, by the request"
}

func paused(b *meter.Book) string {
	switch {
	case b.Billing == extensions.BillingFixed, b.Idle == extensions.IdleMetered:
		return "costs as much as running"
	case b.Idle == extensions.IdleStorageOnly:
		return "costs its disk"
	}
	return "costs nothing"
}

// Terms says in words what a price depends on.
func (l PriceList) Terms(p BookPrice) []string {
	var terms []string
	for _, t := range [][2]string{{"at least", p.Minimum}, {"by steps of", p.Increment}, {"while paused", p.PausedPrice}} {
		if t[1] != "" {
			terms = append(terms, t[0]+" "+t[1])
		}
	}
	switch p.Region {
	case "":
	case meter.AnyRegion:
		terms = append(terms, "in any requested region")
	default:
		terms = append(terms, "in "+p.Region)
	}
	if p.Included > 0 {
		terms = append(terms, fmt.Sprintf("%d free for each sandbox", p.Included))
	}
	if p.Source != "" {
		terms = append(terms, p.Source)
	}
	return terms
}

// Price says in words what is paid, and for what.
func (l PriceList) Price(p BookPrice) (price, per string) {
	switch {
	case p.Price == "":
		return "unknown", p.Unit
	case p.Component == meter.ComponentSurcharge:
		return p.Price + " times", "all other charges"
	}
	return p.Price + " " + string(l.Currency), p.Unit
}

// Covers names the component, with its model or label.
func (l PriceList) Covers(p BookPrice) string {
	name := strings.TrimSpace(p.Component + " " + p.Model + p.Label)
	others := slices.ContainsFunc(l.Components, func(o BookPrice) bool { return o.Component == p.Component && o.Model != "" })
	if p.Component == meter.ComponentGPU && p.Model == "" && others {
		return name + " (any other model)"
	}
	return name
}
