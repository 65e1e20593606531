package route

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxTold limits the candidates with refusals in a text; the Decision has all of them.
const maxTold = 20

// Explain describes the decision in a few lines.
func (d Decision) Explain() string {
	var b strings.Builder
	if d.Chosen == nil {
		if err := d.Err(); err != nil {
			b.WriteString(err.Error())
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%s: %s.", d.Chosen.ID(), d.Why)
	if len(d.Fallbacks) > 0 {
		fmt.Fprintf(&b, "\nIf it has no room: %s.", strings.Join(ids(d.Fallbacks), ", "))
	}
	if d.judge != nil {
		if refusals := d.tellRefusals(); refusals != "" {
			b.WriteString("\nRefused:" + refusals)
		}
	}
	for _, n := range d.Notices {
		b.WriteString("\nNote: " + n + ".")
	}
	return b.String()
}

// allRefused returns the error of a decision without a choice.
func (d Decision) allRefused() error {
	head := "no place can run this sandbox"
	if pin := d.judge.Policy.Extension; pin != "" {
		head = "the profile pins " + pin + ", and it cannot run this sandbox"
		if len(d.judge.Policy.Fallback) > 0 {
			head = "the profile pins " + pin + ", and neither it nor its fallbacks can run this sandbox"
		}
	}
	remedy := "change one of the settings listed here"
	if told := d.told(); len(told) == 1 || told[0].rule.ID.everywhere() {
		remedy = d.judge.read(told[0]).Help
	}
	return extensions.Errorf(d.kind(), "%s:%s", head, d.tellRefusals()).WithRemedy("%s", remedy)
}

// kind returns the common kind of all refusals: waiting helps if only room or an answer is missing.
func (d Decision) kind() extensions.Kind {
	told := d.told()
	all := func(rule Rule) bool {
		return !slices.ContainsFunc(told, func(x refused) bool { return x.rule.ID != rule })
	}
	switch {
	case all(RuleCapacity):
		return extensions.KindExhausted
	case all(RuleUnreachable):
		return extensions.KindUnreachable
	}
	return extensions.KindUnsupported
}

// told selects the refusals for the text. It summarizes those of places that the request ruled out, unless there are no
// others, and mentions an unnamed test double only if there was no other place.
func (d Decision) told() []refused {
	all := d.refused()
	for _, noise := range []func(refused) bool{
		func(x refused) bool { return x.rule.Stage == StageIntent && x.rule.ID != RuleOrigin },
		refused.unnamedDouble,
	} {
		if told := slices.DeleteFunc(slices.Clone(all), noise); len(told) > 0 {
			return told
		}
	}
	if d.Chosen != nil {
		return nil
	}
	return all
}

func (x refused) unnamedDouble() bool { return x.rule.ID == RuleNamedOnly }

// untold counts the places without a line, except test doubles.
func (d Decision) untold(told []refused) (n int) {
	seen := make(map[*Candidate]bool, len(told))
	for _, x := range told {
		seen[x.c] = true
	}
	for _, x := range d.judge.refused {
		if !seen[x.c] && !x.unnamedDouble() {
			seen[x.c] = true
			n++
		}
	}
	return n
}

func (d Decision) tellRefusals() string {
	var b strings.Builder
	told, places := d.told(), 0
	if len(told) > 0 && told[0].rule.ID.everywhere() {
		r := d.judge.read(told[0])
		return fmt.Sprintf("\n- every place: %s (%s). What would help: %s.", r.Reason, r.Rule, r.Help)
	}
	for i, x := range told {
		if i == 0 || told[i-1].c != x.c {
			places++
		}
		if places > maxTold {
			fmt.Fprintf(&b, "\n- and %d more reasons of other places", len(told)-i)
			break
		}
		r := d.judge.read(x)
		fmt.Fprintf(&b, "\n- %s: %s (%s).", r.Candidate, r.Reason, r.Rule)
		if r.Help != "" {
			fmt.Fprintf(&b, " What would help: %s.", r.Help)
		}
	}
	if n := d.untold(told); n > 0 {
		fmt.Fprintf(&b, "\n- and %d more that the request itself rules out", n)
	}
	return b.String()
}

func ids(list []*Candidate) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = c.ID()
	}
	return out
}

// MarshalJSON implements json.Marshaler; candidates appear by id.
func (d Decision) MarshalJSON() ([]byte, error) {
	view := struct {
		Strategy  string    `json:"strategy"`
		Chosen    string    `json:"chosen"`
		Why       string    `json:"why"`
		Order     []string  `json:"order"`
		Fallbacks []string  `json:"fallbacks"`
		Refusals  []Refusal `json:"refusals"`
		Notices   []string  `json:"notices"`
		Attempts  []Attempt `json:"attempts"`
		Error     string    `json:"error,omitempty"`
	}{d.Strategy, "", d.Why, ids(d.Order), ids(d.Fallbacks), d.Refusals(), append([]string{}, d.Notices...), append([]Attempt{},
		d.Attempts...), ""}
	if d.Chosen != nil {
		view.Chosen = d.Chosen.ID()
	}
	if err := d.Err(); err != nil {
		view.Error = err.Error()
	}
	return json.Marshal(view)
}
