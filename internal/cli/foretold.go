package cli

import (
	"fmt"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// foretoldView is the stable JSON form of a place's own estimate beside ours.
type foretoldView struct {
	Extension  string  `json:"extension"`
	Host       *string `json:"host"`
	Duration   string  `json:"duration"`
	Currency   *string `json:"currency"`
	Theirs     *string `json:"theirs"` // what the place expects, at our prices
	Ours       *string `json:"ours"`   // the candidate's expected
	Difference *string `json:"difference"`
	Why        *string `json:"why_unknown"` // null: all that it told was used
	measuresView
}

func foretoldViews(list []engine.Foretold) []foretoldView {
	out := make([]foretoldView, 0, len(list))
	for _, t := range list {
		out = append(out, foretoldView{Extension: t.Extension, Host: known(t.Host), Duration: t.Duration, Currency: known(t.Currency),
			Theirs: known(t.Theirs), Ours: known(t.Ours), Difference: known(t.More), Why: known(t.Why), measuresView: measuresOf(t.Usage)})
	}
	return out
}

func printForetold(w io.Writer, q engine.Quoted) error {
	if len(q.Foretold) == 0 {
		return nil
	}
	rows := [][]string{{"ASKED", "FOR", "THEIRS", "OURS", "DIFFERENCE", "EXPECTS", "NOTE"}}
	for i, t := range q.Foretold {
		rows = append(rows, []string{placeName(t.Extension, t.Host), t.Duration, amount(t.Theirs, t.Currency), amount(t.Ours, t.Currency),
			amount(t.More, t.Currency), foretoldViews(q.Foretold[i : i+1])[0].text(), t.Why})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return grid(w, rows)
}
